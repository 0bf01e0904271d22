package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/runs"
	"github.com/fairlead-dev/fairlead/read/view"
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
each change of the journal and a last line with run_id, status and run_state. If the reader of this
output ends or its disk is full, that is said once on standard error and the run continues. Exit
codes: 0 the run completed, 1 it failed, 2 the workflow has faults, 4 it waits and --no-wait was
given, 5 it was cancelled or left with Ctrl-C.`,
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
			return cli.Usage(cmd,
				fmt.Errorf("the workflow is given twice: %s, and --workflow %s; give one", cli.Line(words[0], cli.PathWidth),
					cli.Line(o.Flags.Workflow, cli.PathWidth)))
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
	sent, err := runs.ForLeader(a.App, f)
	if err != nil {
		return err
	}
	switch {
	case f.Workflow == "" && (f.StartAtStep == "" || o.Check):
		return cli.Usage(cmd, errors.New("no workflow was given; name its file, as in `fairlead run build.yaml`"))
	case f.Workflow != "" && (sent.Repo != "" || o.Check) && !cli.Exists(f.Workflow): // the leader has a host's
		return cli.Usage(cmd, fmt.Errorf("there is no workflow %s", cli.Line(f.Workflow, cli.PathWidth)))
	case o.Check:
		return runs.CheckWorkflow(a.App, f)
	case f.StartAtStep == "":
		return runs.BeginAndFollow(cmd.Context(), a.App, o, func(ctx context.Context, h *runs.Connection) (view.RunView, error) {
			return h.Runs.Start(ctx, sent)
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

func runListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the runs of workflows, the newest first",
		Long:    "It prints a line for each run: its workflow, its status, and how many of its steps are done.",
		Example: "  fairlead run list",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runs.ListRuns(cmd.Context(), a.App) },
	}
}

func runShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "show RUN",
		Short:             "Show the steps of a run, and what each one waits for",
		Long:              "It prints each step with its status, its attempts, and where its report and its log are.",
		Example:           "  fairlead run show 20260801-101500-build",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeRuns,
		RunE:              func(cmd *cobra.Command, words []string) error { return runs.ShowRun(cmd.Context(), a.App, words[0]) },
	}
}

// completeRuns offers the runs that have files.
func (a *app) completeRuns(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(words) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if a.Place(nil) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, _ := runs.RunFiles(a.Dir)
	var names []string
	for _, r := range found {
		names = append(names, cli.Plain(r.RunID)+"\t"+cli.Line(r.WorkflowName, cli.StepWidth))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func pruneCommand(a *app) *cobra.Command {
	var opts runs.PruneOptions
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Archive old runs: by age, by number, or both",
		Long: `It moves the folders of completed runs from .agents/runs to .agents/archive/runs. --older-than
selects runs that have not changed for that long, --keep all but that many of the newest; with
both flags a run must match both. Nothing is deleted without --delete. Failed and cancelled runs
stay in place without --all. A run that is not over is never moved.
` + "`fairlead run resume RUN`" + ` brings an archived run back.`,
		Example: `  fairlead run prune --older-than 30d --dry-run
  fairlead run prune --keep 20`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Older == 0 && !cmd.Flags().Changed("keep") {
				return cli.Usage(cmd, errors.New("choose the runs with --older-than 30d, --keep 20, or both"))
			}
			if opts.Keep < 0 {
				return cli.Usage(cmd, errors.New("--keep must not be negative"))
			}
			return runs.Prune(cmd.Context(), a.App, opts)
		},
	}
	cmd.Flags().Var(&opts.Older, "older-than", "only runs that have not changed for this time, such as 30d or 12h")
	cmd.Flags().IntVar(&opts.Keep, "keep", 0, "keep this number of the newest runs where they are")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "say what would be done, and do nothing")
	cmd.Flags().BoolVar(&opts.Delete, "delete", false, "delete instead of archiving; this cannot be undone")
	cmd.Flags().BoolVar(&opts.All, "all", false, "also runs that have failed or were cancelled")
	return cmd
}

func approveCommand(a *app) *cobra.Command {
	return answerCommand(a, "approve", "Approve a workflow step that waits for a person", false, "is approved", `

If the step asks for more than yes or no, pass a JSON object with --input, as the step's input_schema
demands; `+"`fairlead inbox`"+` prints the schema.`)
}

func rejectCommand(a *app) *cobra.Command {
	return answerCommand(a, "reject", "Reject a workflow step that waits for a person", true, "is rejected", `

The run goes back to the step that loop_back_to names; if it names none, the step fails. --note is
passed to the agent that does the work again.`)
}

func answerCommand(a *app, verb, short string, reject bool, said, more string) *cobra.Command {
	var input, note, tree, governing string
	cmd := &cobra.Command{
		Use:   verb + " RUN [STEP]",
		Short: short,
		Long: `Without STEP it is the step of the run, or of the task, that waits. The command returns when the answer is on disk; the run then
continues.` + more + `

You can give the same answer in Mission Control, or as a file at the path that the inbox prints; then its record says "by
file". A task is never answered by a file.`,
		Example:           "  fairlead " + verb + ` 20260801-101500-build review --note "see my comments"`,
		Args:              cli.Args(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, words []string) error {
			answer := view.StepAnswer{Rejected: reject, Note: note, Tree: tree, Governing: governing}
			if input != "" {
				text, err := runs.ReadInput(a.App, input)
				if err != nil {
					return cli.Usage(cmd, err)
				}
				answer.Input = text
			}
			return runs.Answer(cmd.Context(), a.App, words[0], strings.Join(words[1:], " "), answer, said)
		},
	}
	cmd.Flags().StringVar(&input, "input", "", "a `FILE` with a JSON object, or - for standard input")
	cmd.Flags().StringVar(&note, "note", "", "a note that is kept with the answer")
	cmd.Flags().StringVar(&governing, "governing", "",
		"of a task: the `hash` of the governing files that you looked at, as fairlead diff prints it")
	cmd.Flags().StringVar(&tree, "tree", "",
		"of a task: the `hash` of the tree that you looked at; if the task shows another one, nothing is answered")
	return cmd
}

func cancelCommand(a *app) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "cancel RUN [STEP]",
		Short: "Cancel a run, or one of its steps",
		Long: `It ends the processes of the run and everything that they started, and returns when they are gone.
Completed steps stay completed, and ` + "`fairlead run resume RUN`" + ` can still continue the run. Cancelling
a step that has not started cancels the run.

It also works without a daemon, also for steps that outlived the process that started them.`,
		Example:           `  fairlead run cancel 20260801-101500-build --note "wrong branch"`,
		Args:              cli.Args(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, words []string) error {
			step := ""
			if len(words) == 2 {
				step = words[1]
			}
			return runs.Cancel(cmd.Context(), a.App, words[0], step, note)
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "the reason; it is kept with the run")
	return cmd
}
