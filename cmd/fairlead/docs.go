package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api/server"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/runfile"
	"github.com/fairlead-dev/fairlead/view"
)

func docsCommand(a *app) *cobra.Command {
	pages := map[string]func() error{
		"machines":      a.docsMachines,
		"config":        func() error { _, err := a.Out.Write(config.SchemaJSON()); return err },
		"workflow":      func() error { _, err := a.Out.Write(runfile.WorkflowSchema()); return err },
		"workflow task": func() error { _, err := fmt.Fprint(a.Out, runfile.TaskWorkflow()); return err },
		"api": func() error {
			text, err := server.OpenAPI()
			if err != nil {
				return err
			}
			_, err = a.Out.Write(text)
			return err
		},
		"cli": func() error { _, err := fmt.Fprint(a.Out, cliPage()); return err },
	}
	return &cobra.Command{
		Use:   "docs machines|config|workflow [task]|api|cli",
		Short: "Print reference pages, generated from the code",
		Long: `machines: the tables of all state machines, with a diagram of each.
config: the JSON Schema of fairlead.yaml, for editors.
workflow: the JSON Schema of workflows, for editors.
workflow task: the built-in workflow of tasks, as YAML.
api: the OpenAPI description of the HTTP interface.
cli: every command with its flags.`,
		Example:   "  fairlead docs config > fairlead.schema.json",
		ValidArgs: []string{"machines", "config", "workflow", "task", "api", "cli"},
		Args:      cli.Args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, words []string) error {
			name := strings.Join(words, " ")
			page, ok := pages[name]
			if !ok {
				return cli.Usage(cmd, errors.New("there is no page "+name))
			}
			return page()
		},
	}
}

func (a *app) docsMachines() error {
	if a.JSON {
		return a.PrintJSON(map[string]any{"machines": view.Machines()})
	}
	_, err := fmt.Fprint(a.Out, view.MachinesPage())
	return err
}

// cliPage is doc/cli.md.
func cliPage() string {
	root := (&app{&cli.App{}}).root("")
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var page strings.Builder
	page.WriteString("<!-- Code generated from the program by UPDATE=1 go test ./cmd/fairlead; DO NOT EDIT. -->\n\n# The command line\n\n")
	page.WriteString(root.Short + `.

Every command takes these flags:

` + "```\n" + root.PersistentFlags().FlagUsages() + "```" + `

The workspace is the folder with fairlead.yaml or .fairlead: the current folder or the nearest one
above it. Exit codes:

` + "```\n" + exitCodes + "\n```\n")
	for _, group := range root.Groups() {
		page.WriteString("\n# " + strings.TrimSuffix(group.Title, ":") + "\n")
		for _, verb := range root.Commands() {
			if verb.GroupID == group.ID {
				cliVerb(&page, verb)
			}
		}
	}
	return page.String()
}

func cliVerb(page *strings.Builder, verb *cobra.Command) {
	fmt.Fprintf(page, "\n## %s\n\n%s.\n\n```\n%s\n```\n", verb.CommandPath(), verb.Short, strings.TrimSuffix(verb.UseLine(), " [flags]"))
	if verb.Long != "" {
		fmt.Fprintf(page, "\n%s\n", verb.Long)
	}
	if verb.Example != "" {
		fmt.Fprintf(page, "\n```\n%s\n```\n", strings.ReplaceAll("\n"+verb.Example, "\n  ", "\n")[1:])
	}
	if flags := verb.LocalNonPersistentFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(page, "\n```\n%s```\n", flags)
	}
	for _, sub := range verb.Commands() {
		if !sub.Hidden && verb.Name() != "completion" { // the shells' own words are long, and no news
			cliVerb(page, sub)
		}
	}
}
