package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/view"
)

// CheckWorkflow implements --check. It reads the file here and asks no daemon.
func CheckWorkflow(a *cli.App, f view.RunFlags) error {
	conf, err := a.LoadOrNone()
	if err != nil {
		return err
	}
	warnings, err := runs.CheckWorkflow(f, conf)
	if err != nil {
		return cli.Faulty(err)
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"workflow": f.Workflow, "faults": []string{}, "warnings": view.Some(warnings)})
	}
	printWarnings(a, warnings)
	_, err = fmt.Fprintln(a.Out, cli.Plain(f.Workflow)+": no faults found")
	return err
}

// printWarnings says which fields of a workflow have no effect.
func printWarnings(a *cli.App, warnings []string) {
	for _, w := range warnings {
		fmt.Fprintln(a.Err, "warning: "+cli.Line(w, cli.ErrorWidth))
	}
}

// Resume continues a run and follows it to its end.
func Resume(ctx context.Context, a *cli.App, o *RunOptions, id string) error {
	return Steer(ctx, a, o, func(ctx context.Context, h *Helm) (view.RunView, error) {
		view, err := h.Runs.Show(ctx, id)
		var p *api.Problem
		if errors.As(err, &p) && p.Status == http.StatusNotFound {
			return h.Runs.Resume(ctx, id, o.Flags) // the run may be another program's, or archived
		}
		switch {
		case err != nil:
			return view, err
		case o.Flags.StartAtStep != "":
			return h.Runs.Resume(ctx, id, o.Flags)
		case (view.Stage == string(workflow.Paused) || busy(view)) && o.given:
			return view, &cli.Coded{Code: cli.ExitUsage, Err: fmt.Errorf("run %s is %s and continues with its original flags: leave the flags out, or first `fairlead run cancel %s`", id, cmp.Or(pausedWord(view), view.Status), id)}
		case view.Stage == string(workflow.Paused):
			if _, err := h.Runs.Release(ctx, id, "resumed at the keyboard"); err != nil {
				return view, err
			}
			return h.Runs.Show(ctx, id)
		case view.Status == string(workflow.IsCompleted) && !view.UpdatedAt.After(h.since):
			fmt.Fprintf(a.Err, "run %s is already completed; --start-at-step STEP runs a part of it again\n", cli.Plain(id))
			return view, nil
		case busy(view), view.Status == string(workflow.IsCompleted):
			return view, nil // the run continues by itself, or did so while this process became its daemon
		}
		return h.Runs.Resume(ctx, id, o.Flags)
	})
}

// busy reports whether a run continues by itself.
func busy(view view.RunView) bool {
	return view.Stage == string(workflow.Driven) && (view.Status == string(workflow.IsRunning) || view.Status == string(workflow.IsWaiting))
}

func pausedWord(view view.RunView) string {
	if view.Stage == string(workflow.Paused) {
		return view.Stage
	}
	return ""
}

// Steer starts or continues a run, and follows it to its end.
func Steer(ctx context.Context, a *cli.App, o *RunOptions, begin func(context.Context, *Helm) (view.RunView, error)) error {
	h, err := takeHelm(ctx, a)
	if err != nil {
		return err
	}
	page, err := h.Journal(ctx, apiclient.JournalQuery{Tail: 1})
	if err != nil {
		return errors.Join(err, h.leave(ctx, a, false))
	}
	view, err := begin(ctx, h)
	if err != nil {
		return errors.Join(cli.Faulty(err), h.leave(ctx, a, false))
	}
	printWarnings(a, view.Warnings)
	v := &Voyage{h: h, id: view.ID, noWait: o.noWait, face: faceFor(ctx, a, view)}
	v.face.Look(view)
	view, err = followThrough(ctx, a, v, page.Head)
	h = v.h
	err = cmp.Or(err, v.Ending(view))
	if lerr := h.leave(ctx, a, !errors.Is(err, errLeft)); lerr != nil && cli.CodeOf(err) == cli.ExitDone {
		err = lerr
	}
	if perr := printEnding(a, view); perr != nil {
		return perr
	}
	return err
}

// followThrough follows a run to its end. If the daemon was another command like this one whose own
// run ends first, this process takes over as the daemon.
func followThrough(ctx context.Context, a *cli.App, v *Voyage, from uint64) (view.RunView, error) {
	defer v.face.done()
	for {
		view, err := v.follow(ctx, from)
		if err == nil || !v.left || v.h.own != nil || errors.Is(err, errLeft) {
			return view, err
		}
		if err := v.h.leave(ctx, a, false); err != nil {
			return view, err
		}
		h, err := takeHelm(ctx, a)
		if err != nil {
			v.h = &Helm{Client: v.h.Client, signals: v.h.signals} // there is no own daemon to stop
			return view, err
		}
		v.h, v.left, from = h, false, v.last
	}
}

// faceFor chooses how a run is displayed.
func faceFor(ctx context.Context, a *cli.App, view view.RunView) face {
	switch {
	case a.JSON:
		return jsonFace{a}
	case a.Screenful():
		return newScreen(ctx, a)
	}
	fmt.Fprintf(a.Out, "run %s of %s: %s\n", cli.Plain(view.ID), cli.Line(view.Workflow, cli.StepWidth), cli.HowMany(len(view.Steps), "step", "steps"))
	return &LineFace{A: a, Id: view.ID}
}

// Ending turns a run's end into an exit code and a text that says how to continue.
func (v *Voyage) Ending(view view.RunView) error {
	id := cli.Plain(view.ID)
	switch status := workflow.Status(view.Status); {
	case status == workflow.IsCompleted:
		return nil
	case status == workflow.IsFailed:
		return &cli.Coded{Code: cli.ExitFailed, Err: fmt.Errorf("run %s has failed%s; see `fairlead run show %s`, and continue with `fairlead run resume %s`", id, failures(view), id, id)}
	case status == workflow.IsCancelled:
		return &cli.Coded{Code: cli.ExitCancelled, Err: fmt.Errorf("run %s was cancelled%s; continue it with `fairlead run resume %s`", id, cli.Why(cli.Line(view.Why, cli.ErrorWidth)), id)}
	case v.Asked > 0:
		return &cli.Coded{Code: cli.ExitCancelled, Err: fmt.Errorf("run %s is paused; continue it with `fairlead run resume %s`", id, id)}
	}
	text := "it waits"
	if len(view.Waits) > 0 {
		text = "it waits for " + cli.Line(view.Waits[0], cli.ErrorWidth)
	}
	if more := len(view.Waits) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return &cli.Coded{Code: cli.ExitWaits, Err: fmt.Errorf("run %s is not over: %s; continue it with `fairlead run resume %s`", id, text, id)}
}

// failures quotes the first failed step, and counts the others.
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
	text := ": " + failed[0].ID + cli.Why(cli.Line(failed[0].LastError, cli.ErrorWidth))
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

func printEnding(a *cli.App, view view.RunView) error {
	if a.JSON {
		return a.PrintJSON(ended{view.ID, view.Status, view.StateFile})
	}
	if view.Status != string(workflow.IsCompleted) {
		return nil // the error has the text
	}
	took := ""
	if !view.UpdatedAt.Before(view.CreatedAt) {
		took = " in " + cli.Ago(view.UpdatedAt.Sub(view.CreatedAt))
	}
	_, err := fmt.Fprintf(a.Out, "run %s has %s%s\n", cli.Plain(view.ID), a.Paint(cli.Green, "completed"), took)
	return err
}
