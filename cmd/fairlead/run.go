package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/runs"
	"github.com/fairlead-dev/fairlead/view"
)

func runCommand(a *app) *cobra.Command {
	var opts runs.RunOptions
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a workflow: steps, gates and approvals in order",
		Long: `It starts a run of the workflow in FILE and follows the run to its end. A run executes steps with
agents or commands, checks gates that can send it back, and waits for people who approve. Before
anything starts it lists every fault in the file; --check does only that.

A subcommand wins over a file of the same name; --workflow FILE always means the file.

If a daemon runs here, the daemon does the work and this command only follows it: Ctrl-C stops
following, and the run continues. Without a daemon this command is the daemon until the run ends,
also for the agents of fairlead.yaml. Ctrl-C then pauses the run and waits for running steps to
finish; a second Ctrl-C cancels the run and ends its steps; a third one leaves them running. In
each case, even after kill -9, ` + "`fairlead run resume RUN`" + ` continues where the run stopped; a step
that still runs is adopted, not started again.

--start-at-step continues an earlier run from that step: the run that --run-id names, or else the
run that changed last. Paths are relative to the current folder; if no such file exists there, to
the repository.

On a terminal it shows the steps live. Elsewhere it prints a line for each change; with --json,
each change of the journal and a last line with run_id, status and run_state. Exit codes: 0 the
run completed, 1 it failed, 2 the workflow has faults, 4 it waits and --no-wait was given,
5 it was cancelled or left with Ctrl-C.`,
		Example: `  fairlead run build.yaml
  fairlead run build.yaml --check
  fairlead run --workflow list     (a file whose name is a subcommand)`,
		Args: oneWorkflow(&opts),
		RunE: func(cmd *cobra.Command, words []string) error {
			words, pairs := opts.SplitEnv(words)
			opts.Flags.Env = append(opts.Flags.Env, pairs...)
			if len(words) == 1 {
				opts.Flags.Workflow = words[0]
			}
			if err := a.takeRun(cmd, &opts); err != nil {
				return err
			}
			return a.run(cmd, &opts)
		},
	}
	opts.AddRunFlags(cmd.Flags())
	cmd.Flags().StringVar(&opts.Flags.RunID, "run-id", "", "the run's name (default: one is made)")
	cmd.Flags().BoolVar(&opts.Check, "check", false, "list every fault of the workflow, and start nothing")
	cmd.AddCommand(a.AtFlag(runListCommand(a)), a.AtFlag(runShowCommand(a)), resumeCommand(a), cancelCommand(a), pruneCommand(a))
	return cmd
}

// oneWorkflow checks that the workflow is named once, as an argument or with --workflow.
func oneWorkflow(o *runs.RunOptions) cobra.PositionalArgs {
	return func(cmd *cobra.Command, words []string) error {
		words, _ = o.SplitEnv(words)
		if len(words) == 1 && o.Flags.Workflow != "" {
			return cli.Usage(cmd, fmt.Errorf("the workflow is given twice: %s, and --workflow %s; give one", cli.Line(words[0], cli.PathWidth), cli.Line(o.Flags.Workflow, cli.PathWidth)))
		}
		return cli.Args(cobra.MaximumNArgs(1))(cmd, words)
	}
}

// takeRun reads the flags of a run. By default the run works on the repository of the daemon that it
// is sent to.
func (a *app) takeRun(cmd *cobra.Command, o *runs.RunOptions) error {
	if err := o.Take(cmd, a.Dir); err != nil {
		return err
	}
	if !cmd.Flags().Changed("dir") {
		a.Dir = o.Flags.Repo
	}
	return nil
}

func (a *app) run(cmd *cobra.Command, o *runs.RunOptions) error {
	f := o.Flags
	switch {
	case f.Workflow == "" && (f.StartAtStep == "" || o.Check):
		return cli.Usage(cmd, errors.New("no workflow was given; name its file, as in `fairlead run build.yaml`"))
	case f.Workflow != "" && !cli.Exists(f.Workflow):
		return cli.Usage(cmd, fmt.Errorf("there is no workflow %s", cli.Line(f.Workflow, cli.PathWidth)))
	case o.Check:
		return runs.CheckWorkflow(a.App, f)
	case f.StartAtStep == "":
		return runs.Steer(cmd.Context(), a.App, o, func(ctx context.Context, h *runs.Helm) (view.RunView, error) {
			return h.Runs.Start(ctx, f)
		})
	}
	id := f.RunID
	if id == "" {
		newest, err := runs.NewestRun(f.Repo)
		if err != nil {
			return err
		}
		id = newest
	}
	return runs.Resume(cmd.Context(), a.App, o, id)
}

func resumeCommand(a *app) *cobra.Command {
	var opts runs.RunOptions
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Continue a run that failed, was cancelled, paused or interrupted",
		Long: `Failed steps run again; with --start-at-step that step and every step that depends on it. Completed
steps stay completed. The workflow file is read again, so you can correct a step first. A paused
run is released; a run that is still running is only followed. A run that another program left,
with a run_state.json in Fairlead's format, is imported and continues.

Flags that you leave out keep their values. For the other flags see ` + "`fairlead run --help`" + `.`,
		Example: "  fairlead run resume 20260801-101500-build",
		Args: func(cmd *cobra.Command, words []string) error {
			words, _ = opts.SplitEnv(words)
			return cli.Args(cobra.ExactArgs(1))(cmd, words)
		},
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, words []string) error {
			words, pairs := opts.SplitEnv(words)
			opts.Flags.Env = append(opts.Flags.Env, pairs...)
			if err := a.takeRun(cmd, &opts); err != nil {
				return err
			}
			return runs.Resume(cmd.Context(), a.App, &opts, words[0])
		},
	}
	opts.AddRunFlags(cmd.Flags())
	return cmd
}
