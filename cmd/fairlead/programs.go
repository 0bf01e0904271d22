package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api/mcp"
	"github.com/fairlead-dev/fairlead/api/server"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/setup"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/internal/version"
	"github.com/fairlead-dev/fairlead/process/claudehook"
	"github.com/fairlead-dev/fairlead/read/view"
)

// claudeCommand is about Claude Code's own settings.
func claudeCommand(a *app) *cobra.Command {
	return noun(&cobra.Command{
		Use:   "claude",
		Short: "Install Fairlead's hooks in Claude Code, or remove them",
		Long: `The hooks let Claude Code run a dispatch on its own: /agent-state-machine starts one, and the hooks
enforce what each agent may do.`,
		Example: `  fairlead claude install
  fairlead claude uninstall`,
	}, claudeInstallCommand(a), claudeUninstallCommand(a))
}

func claudeInstallCommand(a *app) *cobra.Command {
	var w setup.Where
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the hooks and the command /agent-state-machine in Claude Code",
		Long: `It adds hooks to the project's .claude/settings.json, and the slash command to .claude/commands. It
changes no other byte of the settings and keeps a copy of them. A second call changes nothing.
` + "`fairlead claude uninstall`" + ` removes exactly what was added.

The hooks call the program fairlead-hook if it is in the same folder as this program, otherwise
` + "`fairlead hook`" + `, by absolute path. On a machine without that program they do nothing.`,
		Example: `  fairlead claude install
  fairlead claude install --project ../shop --dry-run`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.install(cmd, w) },
	}
	w.Flags(cmd)
	return cmd
}

func claudeUninstallCommand(a *app) *cobra.Command {
	var w setup.Where
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove exactly what `fairlead claude install` added",
		Long: `It takes the hooks out of the settings and removes the slash command. Your own settings stay. A
file that you changed after the installation is not removed; its name is printed. Pass the same
place as to install: --project, --local, --user or --plugin.`,
		Example: "  fairlead claude uninstall",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.uninstall(cmd, w) },
	}
	w.Flags(cmd)
	return cmd
}

func (a *app) install(cmd *cobra.Command, w setup.Where) error {
	place, err := w.Place(cmd, a.Dir)
	if err != nil {
		return err
	}
	program, err := setup.HookProgram()
	if err != nil {
		return err
	}
	steps, err := claudehook.Install(place, program)
	if err != nil {
		return fmt.Errorf("install for Claude Code: %w", err)
	}
	if err := setup.CarryOut(a.App, steps, w.Dry); err != nil {
		return err
	}
	if a.JSON || w.Dry {
		return nil
	}
	if place.Settings == "" {
		fmt.Fprintf(a.Out, "\nnext: claude --plugin-dir %s, and there /fairlead:%s\n", cli.Plain(place.Dir), claudehook.CommandName)
		return nil
	}
	fmt.Fprintf(a.Out, "\nnext: start claude anew in the project, and there /%s\n", claudehook.CommandName)
	return nil
}

func (a *app) uninstall(cmd *cobra.Command, w setup.Where) error {
	place, err := w.Place(cmd, a.Dir)
	if err != nil {
		return err
	}
	steps, err := claudehook.Uninstall(place)
	if err != nil {
		return fmt.Errorf("uninstall for Claude Code: %w", err)
	}
	return setup.CarryOut(a.App, steps, w.Dry)
}

func hookCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "hook EVENT",
		Hidden: true, // programs call it
		Short:  "Answer a hook of Claude Code",
		Long: `` + "`fairlead claude install`" + ` makes Claude Code call it. It reads the event as JSON on standard input and
answers in the form that Claude Code documents. In a conversation that was started by
/agent-state-machine it records what happens, denies what the state does not permit, and blocks (exit
code 2) if it cannot decide. Elsewhere it prints nothing. It needs no daemon. Unknown events are
ignored.`,
		Example: "  fairlead hook PreToolUse < event.json",
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, words []string) error {
			var said bytes.Buffer
			code := claudehook.Main(words[0], a.In, a.Out, &said)
			if code == 0 {
				return nil
			}
			return &cli.Coded{Code: code, Err: errors.New(strings.TrimPrefix(strings.TrimSpace(said.String()), "fairlead: "))}
		},
	}
}

// What a session of fairlead has in its environment, so that its program finds the tools of its team.
const (
	mcpURLVar   = "FAIRLEAD_MCP_URL"
	mcpTokenVar = "FAIRLEAD_MCP_TOKEN" //nolint:gosec // the name of a variable
)

func mcpCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "mcp",
		Hidden: true, // programs call it
		Short:  "Serve the team's tools to a program over standard input and output",
		Long: `It speaks the Model Context Protocol and passes on what the daemon offers at /mcp, for programs that
cannot use HTTP. It first asks the daemon of this workspace, so that a restarted daemon is found
again; a session that Fairlead started also has an address and a token in its environment. See
doc/mcp.md.`,
		Example: "  fairlead mcp",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			bridge := &mcp.Bridge{Dir: a.Dir, URL: os.Getenv(mcpURLVar), Token: os.Getenv(mcpTokenVar), Version: version.String()}
			return bridge.Run(cmd.Context(), io.NopCloser(a.In), nopCloser{a.Out})
		},
	}
}

// nopCloser is a stream that its owner closes elsewhere.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func docsCommand(a *app) *cobra.Command {
	pages := map[string]func() error{
		"machines": a.docsMachines,
		"config":   func() error { _, err := a.Out.Write(config.SchemaJSON()); return err },
		"workflow": func() error { _, err := a.Out.Write(runstate.WorkflowSchema()); return err },
		"api":      func() error { _, err := a.Out.Write(server.OpenAPI()); return err },
		"cli":      func() error { _, err := fmt.Fprint(a.Out, cliPage()); return err },
	}
	return &cobra.Command{
		Use:   "docs machines|config|workflow|api|cli",
		Short: "Print reference pages, generated from the code",
		Long: `machines: the tables of all state machines, with a diagram of each.
config: the JSON Schema of fairlead.yaml, for editors.
workflow: the JSON Schema of workflows, for editors.
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

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "It prints the version of Fairlead and of Go, and the platform.",
		Example: "  fairlead version --json",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(*cobra.Command, []string) error { return a.PrintVersion() },
	}
}
