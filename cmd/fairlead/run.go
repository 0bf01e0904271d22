package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/view"
)

func (a *app) runVerb() *cobra.Command {
	var opts runOptions
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
			if len(words) == 1 {
				opts.flags.Workflow = words[0]
			}
			if err := a.takeRun(cmd, &opts); err != nil {
				return err
			}
			return a.run(cmd, &opts)
		},
	}
	opts.addRunFlags(cmd.Flags())
	cmd.Flags().StringVar(&opts.flags.RunID, "run-id", "", "the run's name (default: one is made)")
	cmd.Flags().BoolVar(&opts.check, "check", false, "list every fault of the workflow, and start nothing")
	cmd.AddCommand(a.runListVerb(), a.runShowVerb(), a.resumeVerb(), a.cancelVerb(), a.pruneVerb())
	return cmd
}

// oneWorkflow checks that the workflow is named once, as an argument or with --workflow.
func oneWorkflow(o *runOptions) cobra.PositionalArgs {
	return func(cmd *cobra.Command, words []string) error {
		if len(words) == 1 && o.flags.Workflow != "" {
			return usage(cmd, fmt.Errorf("the workflow is given twice: %s, and --workflow %s; give one", line(words[0], pathWidth), line(o.flags.Workflow, pathWidth)))
		}
		return args(cobra.MaximumNArgs(1))(cmd, words)
	}
}

// takeRun takes the flags of a run in. The repository that is worked on is the one whose
// daemon is asked, unless somebody says otherwise.
func (a *app) takeRun(cmd *cobra.Command, o *runOptions) error {
	if err := o.take(cmd, a.dir); err != nil {
		return err
	}
	if !cmd.Flags().Changed("dir") {
		a.dir = o.flags.Repo
	}
	return nil
}

func (a *app) run(cmd *cobra.Command, o *runOptions) error {
	f := o.flags
	switch {
	case f.Workflow == "" && (f.StartAtStep == "" || o.check):
		return usage(cmd, errors.New("no workflow was given; name its file, as in `fairlead run build.yaml`"))
	case f.Workflow != "" && !exists(f.Workflow):
		return usage(cmd, fmt.Errorf("there is no workflow %s", line(f.Workflow, pathWidth)))
	case o.check:
		return a.checkWorkflow(f)
	case f.StartAtStep == "":
		return a.steer(cmd.Context(), o, func(ctx context.Context, h *helm) (view.RunView, error) {
			return h.StartRun(ctx, f)
		})
	}
	id := f.RunID
	if id == "" {
		newest, err := newestRun(f.Repo)
		if err != nil {
			return err
		}
		id = newest
	}
	return a.resume(cmd.Context(), o, id)
}

// checkWorkflow is --check. It asks no daemon: the file is looked at from here.
func (a *app) checkWorkflow(f view.RunFlags) error {
	conf, err := a.loadOrNone()
	if err != nil {
		return err
	}
	if err := runs.CheckWorkflow(f, conf); err != nil {
		return faulty(err)
	}
	if a.json {
		return a.printJSON(map[string]any{"workflow": f.Workflow, "faults": []string{}})
	}
	_, err = fmt.Fprintln(a.out, plain(f.Workflow)+": no fault was found")
	return err
}

func (a *app) resumeVerb() *cobra.Command {
	var opts runOptions
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Continue a run that failed, was cancelled, paused or interrupted",
		Long: `Failed steps run again; with --start-at-step that step and every step that depends on it. Completed
steps stay completed. The workflow file is read again, so you can correct a step first. A paused
run is released; a run that is still running is only followed. A run that another program left,
with a run_state.json in Fairlead's format, is imported and continues.

Flags that you leave out keep their values. For the other flags see ` + "`fairlead run --help`" + `.`,
		Example:           "  fairlead run resume 20260801-101500-build",
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, words []string) error {
			if err := a.takeRun(cmd, &opts); err != nil {
				return err
			}
			return a.resume(cmd.Context(), &opts, words[0])
		},
	}
	opts.addRunFlags(cmd.Flags())
	return cmd
}

func (a *app) resume(ctx context.Context, o *runOptions, id string) error {
	return a.steer(ctx, o, func(ctx context.Context, h *helm) (view.RunView, error) {
		view, err := h.Run(ctx, id)
		var p *api.Problem
		if errors.As(err, &p) && p.Status == http.StatusNotFound {
			return h.ResumeRun(ctx, id, o.flags) // it may be another program's, or archived
		}
		switch {
		case err != nil:
			return view, err
		case o.flags.StartAtStep != "":
			return h.ResumeRun(ctx, id, o.flags)
		case (view.Stage == string(workflow.Paused) || busy(view)) && o.given:
			return view, &coded{exitUsage, fmt.Errorf("run %s is %s, and goes on as it was begun: leave the flags out, or first `fairlead run cancel %s`", id, orElse(pausedWord(view), view.Status), id)}
		case view.Stage == string(workflow.Paused):
			if _, err := h.ReleaseRun(ctx, id, "resumed at the keyboard"); err != nil {
				return view, err
			}
			return h.Run(ctx, id)
		case busy(view), view.Status == string(workflow.IsCompleted) && view.UpdatedAt.After(h.since):
			return view, nil // it goes on by itself, or has, while we became its daemon
		}
		return h.ResumeRun(ctx, id, o.flags)
	})
}

// busy says whether a run goes on by itself.
func busy(view view.RunView) bool {
	return view.Stage == string(workflow.Driven) && (view.Status == string(workflow.IsRunning) || view.Status == string(workflow.IsWaiting))
}

func pausedWord(view view.RunView) string {
	if view.Stage == string(workflow.Paused) {
		return view.Stage
	}
	return ""
}

// steer begins, or goes on with, a run, and follows it to its end.
func (a *app) steer(ctx context.Context, o *runOptions, begin func(context.Context, *helm) (view.RunView, error)) error {
	h, err := a.takeHelm(ctx)
	if err != nil {
		return err
	}
	page, err := h.Journal(ctx, apiclient.JournalQuery{Tail: 1})
	if err != nil {
		return errors.Join(err, h.leave(ctx, a, false))
	}
	view, err := begin(ctx, h)
	if err != nil {
		return errors.Join(faulty(err), h.leave(ctx, a, false))
	}
	v := &voyage{a: a, h: h, id: view.ID, noWait: o.noWait, face: a.faceFor(ctx, view)}
	v.face.look(view)
	view, err = a.followThrough(ctx, v, page.Head)
	h = v.h
	err = cmpErr(err, v.ending(view))
	if lerr := h.leave(ctx, a, !errors.Is(err, errLeft)); lerr != nil && codeOf(err) == exitDone {
		err = lerr
	}
	if perr := a.printEnding(view); perr != nil {
		return perr
	}
	return err
}

// followThrough follows a run to its end, also where the daemon was another verb like this one
// whose own run was over first: then the helm is taken from it.
func (a *app) followThrough(ctx context.Context, v *voyage, from uint64) (view.RunView, error) {
	defer v.face.done()
	for {
		view, err := v.follow(ctx, from)
		if err == nil || !v.left || v.h.own != nil || errors.Is(err, errLeft) {
			return view, err
		}
		if err := v.h.leave(ctx, a, false); err != nil {
			return view, err
		}
		h, err := a.takeHelm(ctx)
		if err != nil {
			v.h = &helm{Client: v.h.Client, signals: v.h.signals} // there is nothing more to let go of
			return view, err
		}
		v.h, v.left, from = h, false, v.last
	}
}

// cmpErr is the first that is one.
func cmpErr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// faceFor chooses how a run is shown.
func (a *app) faceFor(ctx context.Context, view view.RunView) face {
	switch {
	case a.json:
		return jsonFace{a}
	case a.screenful():
		return newScreen(ctx, a)
	}
	fmt.Fprintf(a.out, "run %s of %s: %d steps\n", plain(view.ID), line(view.Workflow, stepWidth), len(view.Steps))
	return &lineFace{a: a, id: view.ID}
}

// ending is what a run's end is as an exit code, and in words with the way on.
func (v *voyage) ending(view view.RunView) error {
	id := plain(view.ID)
	switch status := workflow.Status(view.Status); {
	case status == workflow.IsCompleted:
		return nil
	case status == workflow.IsFailed:
		return &coded{exitFailed, fmt.Errorf("run %s has failed%s; see `fairlead run show %s`, and go on with `fairlead run resume %s`", id, failures(view), id, id)}
	case status == workflow.IsCancelled:
		return &coded{exitCancelled, fmt.Errorf("run %s was cancelled%s; go on all the same with `fairlead run resume %s`", id, why(line(view.Why, errorWidth)), id)}
	case v.asked > 0:
		return &coded{exitCancelled, fmt.Errorf("run %s is paused; go on with `fairlead run resume %s`", id, id)}
	}
	text := "it waits"
	if len(view.Waits) > 0 {
		text = "it waits for " + line(view.Waits[0], errorWidth)
	}
	if more := len(view.Waits) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return &coded{exitWaits, fmt.Errorf("run %s is not over: %s; go on with `fairlead run resume %s`", id, text, id)}
}

// failures quotes the first step that failed, and counts the others.
func failures(shown view.RunView) string {
	var failed []view.StepView
	for _, s := range shown.Steps {
		if s.Status == string(workflow.Failed) {
			failed = append(failed, s)
		}
	}
	if len(failed) == 0 {
		return ""
	}
	text := ": " + failed[0].ID + why(line(failed[0].LastError, errorWidth))
	if len(failed) > 1 {
		text += fmt.Sprintf(" (and %d more steps)", len(failed)-1)
	}
	return text
}

// ended is the last line for programs (DESIGN, Contracts).
type ended struct {
	RunID    string `json:"run_id"`
	Status   string `json:"status"`
	RunState string `json:"run_state"` // the path of run_state.json
}

func (a *app) printEnding(view view.RunView) error {
	if a.json {
		return a.printJSON(ended{view.ID, view.Status, view.StateFile})
	}
	if view.Status != string(workflow.IsCompleted) {
		return nil // the error says it all
	}
	took := ""
	if !view.UpdatedAt.Before(view.CreatedAt) {
		took = " in " + ago(view.UpdatedAt.Sub(view.CreatedAt))
	}
	_, err := fmt.Fprintf(a.out, "run %s has %s%s\n", plain(view.ID), a.paint(green, "completed"), took)
	return err
}
