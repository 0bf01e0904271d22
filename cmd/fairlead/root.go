package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
)

// run is the whole program as a function: arguments and streams in, exit code out.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	out, endOut := cli.Terminal(out)
	errs, endErr := cli.Terminal(errs)
	defer func() { _, _ = endOut(), endErr() }() // a terminal that is gone is no fault of the command
	a := &app{&cli.App{In: in, Out: out, Err: errs}}
	name := ""
	if first := firstWord(args); first < len(args) {
		name = args[first]
	}
	root := a.root(name)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	return a.Report(root.ExecuteContext(context.Background()))
}

// root is the command with the one of that name below it; with all of them if there is none of that name.
func (a *app) root(name string) *cobra.Command {
	var which bool
	root := &cobra.Command{
		Use:   "fairlead",
		Short: "Run a team of AI coding agents on a repository",
		Long: `Fairlead runs a team of AI coding agents on a repository. It starts and stops them, shows
what each one does, asks you when an agent needs an answer, and keeps a record of everything.

  fairlead demo                  try it with scripted agents in a scratch repository
  fairlead init && fairlead up   start in your own repository`,
		SuggestionsMinimumDistance: 2, // two letters changed places
		SilenceErrors:              true,
		SilenceUsage:               true,
		Args:                       knownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if which {
				return a.PrintVersion()
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.Place(cmd) },
	}
	root.PersistentFlags().StringVar(&a.Dir, "dir", "", "the workspace `folder` (default: the folder with fairlead.yaml, here or above)")
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "print JSON, for programs")
	root.PersistentFlags().BoolVarP(&a.Verbose, "verbose", "v", false, "show details, such as rule ids in errors")
	root.Flags().BoolVar(&which, "version", false, "print the version")
	_ = root.Flags().MarkHidden("version") // it exists; the command of that name is in the list
	root.SetUsageTemplate(usageTemplate)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return cli.Usage(cmd, err) })
	a.addVerbs(root, name)
	return root
}

// usageTemplate is what follows the description of a command in its help.
const usageTemplate = `{{if .HasParent}}Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}{{end}}{{if .HasExample}}

{{if .HasParent}}Example:
{{end}}{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{if eq (len .Groups) 0}}

Commands:{{range $cmds}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{else}}{{range $i, $group := .Groups}}{{if $i}}

{{end}}{{.Title}}{{range $cmds}}{{if and (eq .GroupID $group.ID) .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

Flags of every command:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if not .HasParent}}
` + "`fairlead COMMAND --help` explains a command, with an example; `fairlead help exit-codes` the exit codes." + `{{end}}
`

// knownVerb refuses a command that does not exist, and suggests one that does.
func knownVerb(cmd *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	text := fmt.Sprintf("there is no command %q", strings.TrimPrefix(cmd.CommandPath()+" "+words[0], "fairlead "))
	if here := elsewhere[words[0]]; here != "" && !cmd.HasParent() {
		text += "; use `fairlead " + here + "`"
	} else if near := cmd.SuggestionsFor(words[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return cli.Usage(cmd, errors.New(text))
}

// speaking is a command whose words, but for the first ones, are a text.
func (a *app) speaking(first int, do func(cmd *cobra.Command, words []string, text string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, words []string) error {
		text, err := a.Spoken(words[first:])
		if err != nil {
			return cli.Usage(cmd, err)
		}
		return do(cmd, words, text)
	}
}

// asking is a command that asks the daemon.
func (a *app) asking(do func(ctx context.Context, client *apiclient.Client, words []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, words []string) error {
		client, err := a.Dial()
		if err != nil {
			return err
		}
		defer client.Close()
		return do(cmd.Context(), client, words)
	}
}
