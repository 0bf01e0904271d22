package main

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/agents"
	"github.com/fairlead-dev/fairlead/cli/configure"
	"github.com/fairlead-dev/fairlead/cli/daemon"
	"github.com/fairlead-dev/fairlead/config/edit"
)

func agentCommand(a *app) *cobra.Command {
	return noun(&cobra.Command{
		Use:   "agent",
		Short: "Add, edit or remove an agent in fairlead.yaml",
		Long: `Each command prints the change of fairlead.yaml as a diff and asks before it writes. Comments, order and
everything that is not changed stay as they are. A file that would have faults is not written. A running
daemon loads the file at once.`,
		Example: `  fairlead agent add reviewer --driver claude --description "Reviews changes"
  fairlead agent edit coder --model opus --dry-run`,
	}, agentChangeCommand(a, edit.Add), agentChangeCommand(a, edit.Edit), agentRemoveCommand(a))
}

func agentChangeCommand(a *app, op edit.Op) *cobra.Command {
	opts := configure.Options{Reload: daemon.Reload}
	var rest string
	cmd := &cobra.Command{
		Use:   string(op) + " NAME",
		Short: map[edit.Op]string{edit.Add: "Add an agent to fairlead.yaml", edit.Edit: "Change an agent of fairlead.yaml"}[op],
		Long: `A flag with an empty value removes its key. Keys without a flag are given as YAML in a file with --rest. A
variable that --env adds gets the value of Fairlead's own variable of that name. --test looks at the
agent's program as ` + "`fairlead doctor`" + ` does, and writes nothing.`,
		Example: map[edit.Op]string{
			edit.Add:  `  fairlead agent add reviewer --driver acp --command opencode --command acp --can-write "docs/**"`,
			edit.Edit: `  fairlead agent edit coder --session-limit 2h --yes`,
		}[op],
		Args: cli.Args(cobra.ExactArgs(1)),
	}
	f := cmd.Flags()
	formFlags(f, &edit.Agent{})
	f.StringVar(&rest, "rest", "", "a `file` with all other keys of the entry, as YAML")
	f.BoolVar(&opts.Test, "test", false, "look at the agent's program, and write nothing")
	agentFlags(cmd, &opts)
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		return configure.Do(cmd.Context(), a.App, op, words[0], func(was *edit.Agent) error {
			if f.Changed("rest") {
				was.Rest = ""
			}
			if rest != "" {
				text, err := os.ReadFile(rest)
				if err != nil {
					return err
				}
				was.Rest = string(text)
			}
			return take(f, was)
		}, opts)
	}
	return cmd
}

// formFlags binds the flags of an entry to a form. The values of the form are the defaults.
func formFlags(f *pflag.FlagSet, form *edit.Agent) {
	f.StringVar(&form.Description, "description", form.Description, "its purpose, in one `sentence`")
	f.StringVar(&form.Driver, "driver", form.Driver, "script, exec, acp, claude or codex")
	f.StringArrayVar(&form.Command, "command", form.Command, "a `word` of its command; once for each")
	f.StringVar(&form.Script, "script", form.Script, "the `file` that driver script plays")
	f.StringVar(&form.Workspace, "workspace", form.Workspace, "the `folder` in which it works")
	f.StringVar(&form.Model, "model", form.Model, "the model, in its program's spelling")
	f.StringVar(&form.SessionPrompt, "session-prompt", form.SessionPrompt, "the prompt at the start of a session")
	f.IntVar(&form.Instances, "instances", form.Instances, "how many sessions may run at the same time")
	f.StringArrayVar(&form.CanWrite, "can-write", form.CanWrite, "a `pattern` of files that it may write; once for each")
	f.StringVar(&form.Sandbox, "sandbox", form.Sandbox, "workspace, required, auto or off")
	f.StringVar(&form.SessionLimit, "session-limit", form.SessionLimit, "the longest session, such as 2h")
	f.Int64Var(&form.TokensPerDay, "tokens-per-day", form.TokensPerDay, "its limit of tokens in a day")
	f.Float64Var(&form.CostPerDayUSD, "cost-per-day", form.CostPerDayUSD, "its limit of `USD` in a day")
	f.StringArrayVar(&form.Env, "env", form.Env, "the `name` of a variable that it gets; once for each")
	f.BoolVar(&form.Lead, "lead", form.Lead, "it leads the crew")
}

// take sets the fields of an entry whose flags were given.
func take(given *pflag.FlagSet, form *edit.Agent) (err error) {
	to := pflag.NewFlagSet("", pflag.ContinueOnError)
	formFlags(to, form)
	given.Visit(func(flag *pflag.Flag) {
		own := to.Lookup(flag.Name)
		if own == nil {
			return
		}
		list, is := flag.Value.(pflag.SliceValue)
		switch {
		case !is:
			err = errors.Join(err, own.Value.Set(flag.Value.String()))
		case slices.Equal(list.GetSlice(), []string{""}): // --env "" is an empty list
			err = errors.Join(err, own.Value.(pflag.SliceValue).Replace(nil))
		default:
			err = errors.Join(err, own.Value.(pflag.SliceValue).Replace(list.GetSlice()))
		}
	})
	return err
}

func agentRemoveCommand(a *app) *cobra.Command {
	opts := configure.Options{Reload: daemon.Reload}
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove an agent from fairlead.yaml",
		Long: `A session of it that is at work may finish; then the agent starts nothing more. Its history stays. The
comment directly above its entry goes with it. Take it out of channels and tasks first.`,
		Example: `  fairlead agent remove coder`,
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, words []string) error {
			return configure.Do(cmd.Context(), a.App, edit.Remove, words[0], nil, opts)
		},
	}
	agentFlags(cmd, &opts)
	return cmd
}

func agentFlags(cmd *cobra.Command, opts *configure.Options) {
	cmd.Flags().BoolVar(&opts.Yes, "yes", false, "write without a question")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "print the change, and write nothing")
}

func orderCommand(a *app, verb string) *cobra.Command {
	var opts agents.Ordered
	var all bool
	about := agents.Commands[verb]
	cmd := &cobra.Command{
		Use:   verb + " AGENT...",
		Short: about.Short,
		Long: about.Long + `

The command returns when the order is on disk. With --wait it returns when the order has taken effect:
a started agent runs, a stopped one has stopped, a single session is over. Exit code 1 means that the
session failed.`,
		Example:           "  fairlead " + verb + " coder --wait\n  fairlead " + verb + " --all",
		ValidArgsFunction: a.completeAgents,
		Args: func(cmd *cobra.Command, names []string) error {
			if all == (len(names) > 0) {
				return cli.Usage(cmd, errors.New("name one or more agents, or pass --all"))
			}
			return nil
		},
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, names []string) error {
			if all {
				var err error
				if names, err = agents.Names(ctx, client); err != nil {
					return err
				}
			}
			return agents.Command(ctx, a.App, client, verb, names, opts)
		}),
	}
	if verb == "stop" {
		cmd.Flags().BoolVar(&opts.Now, "now", false, "end the running session; a second call ends it without its grace period")
	}
	cmd.Flags().BoolVar(&opts.Wait, "wait", false, "return when the order has taken effect")
	cmd.Flags().BoolVar(&all, "all", false, "all agents of the team")
	cmd.Flags().StringVar(&opts.Note, "note", "", "the reason, kept in agent_state.json")
	return cmd
}

func holdCommand(a *app) *cobra.Command {
	return switchCommand(a, "hold", "Start no new sessions; running ones finish",
		"The hold applies to the whole team and survives a restart. `fairlead unhold` ends it.",
		"the team is held: no session starts until `fairlead unhold`", (*apiclient.Client).Hold)
}

func unholdCommand(a *app) *cobra.Command {
	return switchCommand(a, "unhold", "End the hold: agents start again",
		"Agents whose desired state asks for a session start it now.",
		"the hold is lifted", (*apiclient.Client).Unhold)
}

func switchCommand(a *app, verb, short, long, said string,
	give func(*apiclient.Client, context.Context, string) (api.Held, error),
) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:     verb,
		Short:   short,
		Long:    long,
		Example: "  fairlead " + verb + ` --note "release freeze"`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			answer, err := give(client, ctx, note)
			if err != nil {
				return err
			}
			return a.Say(answer, "%s", said)
		}),
	}
	cmd.Flags().StringVar(&note, "note", "", "why")
	return cmd
}

func tellCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "tell AGENT TEXT...",
		Short: "Tell an agent something while it works",
		Long: `AGENT is an agent, one of its sessions (coder-12) or a task (T12). A program that reads during its answer, such
as Claude Code, gets the text before its next step, or after its answer if that was the last one. Otherwise a
task goes on with it when the answer is over, and an agent that runs session after session begins its next one
with it. The command says which. The text is stored first, and is sent until the program confirms that it has
read it.
As TEXT, - reads standard input; several words are one text.`,
		Example:           `  fairlead tell coder "use the v2 client"`,
		Args:              cli.Args(cobra.MinimumNArgs(2)),
		ValidArgsFunction: a.completeAgents,
		RunE: a.speaking(1, func(cmd *cobra.Command, words []string, text string) error {
			return a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
				return agents.Tell(ctx, a.App, client, words[0], text)
			})(cmd, words)
		}),
	}
}
