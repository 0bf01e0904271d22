package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/runs"
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

// ForLeader is a request as the leader of the team takes it: a host names no repository, and a workflow by its path below it. On any
// other machine it is unchanged.
func ForLeader(a *cli.App, f view.RunFlags) (view.RunFlags, error) {
	is, err := daemon.IsHost(a)
	if err != nil || !is {
		return f, err
	}
	if below, err := filepath.Rel(f.Repo, f.Workflow); err == nil && filepath.IsLocal(below) {
		f.Workflow = below
	}
	f.Repo = ""
	return f, nil
}

// Resume continues a run and follows it to its end.
func Resume(ctx context.Context, a *cli.App, o *RunOptions, id string) error {
	flags, err := ForLeader(a, o.Flags)
	if err != nil {
		return err
	}
	o.named = true
	return BeginAndFollow(ctx, a, o, func(ctx context.Context, h *Connection) (view.RunView, error) {
		view, err := h.Runs.Show(ctx, id)
		if p, ok := errors.AsType[*api.Problem](err); ok && p.Status == http.StatusNotFound {
			return h.Runs.Resume(ctx, id, flags) // the run may be another program's, or archived
		}
		switch {
		case err != nil:
			return view, err
		case o.Flags.StartAtStep != "":
			return h.Runs.Resume(ctx, id, flags)
		case (view.Stage == string(workflow.Paused) || busy(view)) && o.given:
			return view,
				&cli.Coded{
					Code: cli.ExitUsage,
					Err:  fmt.Errorf("run %s is %s and continues with its original flags: leave the flags out, or first `fairlead run cancel %s`", id, cmp.Or(pausedWord(view), view.Status), id),
				}
		case view.Stage == string(workflow.Paused), view.Away != "":
			if _, err := h.Runs.Release(ctx, id, "resumed at the keyboard"); err != nil {
				return view, err
			}
			return h.Runs.Show(ctx, id)
		case view.Status == string(workflow.IsCompleted) && !view.UpdatedAt.After(h.since):
			view, err := h.Runs.Resume(ctx, id, flags) // its run_state.json may have been edited
			if err != nil || view.UpdatedAt.After(h.since) {
				return view, err
			}
			fmt.Fprintf(a.Err, "run %s is already completed; --start-at-step STEP runs a part of it again\n", cli.Plain(id))
			return view, nil
		case busy(view), view.Status == string(workflow.IsCompleted):
			return view, nil // the run continues by itself, or did so while this process became its daemon
		}
		return h.Runs.Resume(ctx, id, flags)
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

// BeginAndFollow starts or continues a run, and follows it to its end.
func BeginAndFollow(ctx context.Context, a *cli.App, o *RunOptions, begin func(context.Context, *Connection) (view.RunView, error)) error {
	signal.Ignore(syscall.SIGPIPE) // a reader of the output that ends does not end the run
	h, page, view, err := beginRun(ctx, a, o.named || o.Flags.RunID != "", begin)
	if err != nil {
		return err
	}
	shown := *a
	shown.Out = &runOutput{to: a.Out, id: view.ID, errs: a.Err}
	a = &shown
	printWarnings(a, view.Warnings)
	v := &Follower{h: h, id: view.ID, noWait: o.noWait, display: displayFor(ctx, a, view)}
	v.display.Look(view)
	view, err = followThrough(ctx, a, v, page.Head)
	h = v.h
	err = cmp.Or(err, v.Ending(view))
	if lerr := h.leave(ctx, a, !errors.Is(err, errLeft)); lerr != nil && cli.CodeOf(err) == cli.ExitDone {
		err = lerr
	}
	return cmp.Or(err, printEnding(a, view))
}

// runOutput is the standard output of a command that follows a run. If its reader has ended, or its disk is full, that is said once
// on standard error, and nothing more is printed: the run continues, and the exit code is the run's.
type runOutput struct {
	to   io.Writer
	id   string
	errs io.Writer
	gone bool
}

func (w *runOutput) Write(b []byte) (int, error) {
	if w.gone {
		return len(b), nil
	}
	if _, err := w.to.Write(b); err != nil {
		w.gone = true
		fmt.Fprintf(w.errs,
			"fairlead: standard output cannot be written (%s): run %[2]s continues without it; `fairlead run show %[2]s` shows it\n",
			cli.Plain(err.Error()), cli.Plain(w.id))
	}
	return len(b), nil
}

// Fd is the descriptor of a terminal.
func (w *runOutput) Fd() uintptr {
	if file, ok := w.to.(interface{ Fd() uintptr }); ok {
		return file.Fd()
	}
	return ^uintptr(0)
}

// beginRun connects, and starts or continues the run. If the daemon was a command like this one, which ended before it
// was asked, this process takes its place. If it ended before it answered, a run with a name is asked for again: a second run
// of that name is refused, so it begins once. Whether a run without a name has begun is then not known.
func beginRun(ctx context.Context, a *cli.App, named bool, begin func(context.Context, *Connection) (view.RunView, error)) (*Connection,
	api.Page, view.RunView, error,
) {
	var unanswered *apiclient.NoAnswer // at an earlier try
	for began := time.Now(); ; {
		h, err := connect(ctx, a)
		if err != nil {
			return nil, api.Page{}, view.RunView{}, err
		}
		var run view.RunView
		page, err := h.Journal(ctx, apiclient.JournalQuery{Tail: 1})
		if err == nil {
			run, err = begin(ctx, h)
		}
		if err == nil {
			return h, page, run, nil
		}
		if refused := (*apiclient.Refused)(nil); unanswered != nil && errors.As(err, &refused) {
			err = fmt.Errorf("%w; it may have been begun by this command, whose first try had no answer", err)
		}
		again := h.own == nil && time.Since(began) < connectWait && (apiclient.Away(err) || named && errors.As(err, &unanswered))
		if lerr := h.leave(ctx, a, false); !again || lerr != nil || cli.Pause(ctx, cli.DownPoll) != nil {
			return nil, api.Page{}, view.RunView{}, errors.Join(cli.Faulty(err), lerr)
		}
	}
}

// followThrough follows a run to its end. If the daemon was another command like this one whose own
// run ends first, this process takes over as the daemon.
func followThrough(ctx context.Context, a *cli.App, v *Follower, from uint64) (view.RunView, error) {
	defer v.display.done()
	for {
		view, err := v.follow(ctx, from)
		if err == nil || v.h.own != nil || errors.Is(err, errLeft) || !v.left && !wasLeft(ctx, a, v.last, err) {
			return view, err
		}
		if err := v.h.leave(ctx, a, false); err != nil {
			return view, err
		}
		h, err := connect(ctx, a)
		if err != nil {
			v.h = &Connection{Client: v.h.Client, signals: v.h.signals} // there is no own daemon to stop
			return view, err
		}
		v.h, v.left, from = h, false, v.last
	}
}

// wasLeft reports whether the daemon ended with the command that ran it. The journal says that also if the stream ended
// before this change.
func wasLeft(ctx context.Context, a *cli.App, after uint64, ended error) bool {
	if !apiclient.Away(ended) {
		return false
	}
	reader, err := a.OpenToRead(ctx)
	if err != nil {
		return false
	}
	page, err := reader.Journal(ctx, apiclient.JournalQuery{After: after, Entity: "team/team"})
	return errors.Join(err, reader.Close()) == nil &&
		slices.ContainsFunc(page.Changes, func(ch api.Change) bool { return ch.Actor.ID == runActor })
}

// displayFor chooses how a run is displayed.
func displayFor(ctx context.Context, a *cli.App, view view.RunView) display {
	switch {
	case a.JSON:
		return jsonDisplay{a}
	case a.Screenful():
		return newScreen(ctx, a)
	}
	fmt.Fprintf(a.Out, "run %s of %s: %s\n", cli.Plain(view.ID), cli.Line(view.Workflow, cli.StepWidth),
		cli.HowMany(len(view.Steps), "step", "steps"))
	return &LineDisplay{A: a, Id: view.ID}
}

// Ending turns a run's end into an exit code and a text that says how to continue.
func (v *Follower) Ending(view view.RunView) error {
	id := cli.Plain(view.ID)
	switch status := workflow.Status(view.Status); {
	case status == workflow.IsCompleted:
		return nil
	case status == workflow.IsFailed:
		return &cli.Coded{
			Code: cli.ExitFailed,
			Err: fmt.Errorf("run %s has failed%s; see `fairlead run show %s`, and continue with `fairlead run resume %s`", id,
				failures(view), id, id),
		}
	case status == workflow.IsCancelled:
		return &cli.Coded{
			Code: cli.ExitCancelled,
			Err: fmt.Errorf("run %s was cancelled%s; continue it with `fairlead run resume %s`", id,
				cli.Why(cli.Line(view.Why, cli.ErrorWidth)), id),
		}
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
	return &cli.Coded{
		Code: cli.ExitWaits,
		Err:  fmt.Errorf("run %s is not over: %s; continue it with `fairlead run resume %s`", id, text, id),
	}
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
	printEdited(a, view)
	if view.WorktreeEnd != "" {
		fmt.Fprintf(a.Out, "worktree %s: %s\n", cli.Plain(view.Worktree), cli.Line(view.WorktreeEnd, cli.ErrorWidth))
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

// Connection is the daemon that controls runs: the daemon of the repository or, if none runs, one in this
// process that lives as long as the command. Both are reached over the socket, so that there is one
// way to do a thing, and so that `fairlead approve` in another terminal finds the run.
type Connection struct {
	*apiclient.Client
	own     *daemon.Daemon // nil: another process is the daemon
	since   time.Time      // when it was started
	signals chan os.Signal
}

// connectWait is how long to wait for a process that holds the workspace and does not answer yet: of
// two runs that start at the same moment, one becomes the other's daemon.
const connectWait = 10 * time.Second

// connect finds the daemon of the repository, or becomes it.
func connect(ctx context.Context, a *cli.App) (*Connection, error) {
	h := &Connection{since: time.Now(), signals: make(chan os.Signal, 4)}
	signal.Notify(h.signals, os.Interrupt, syscall.SIGTERM)
	for {
		err := connectOnce(ctx, a, h)
		if err == nil {
			return h, nil
		}
		if !errors.As(err, new(*workspace.Busy)) || time.Since(h.since) > connectWait || cli.Pause(ctx, cli.DownPoll) != nil {
			signal.Stop(h.signals)
			return nil, err
		}
	}
}

// connectOnce is one attempt of connect. The error is a *workspace.Busy if another process holds the
// workspace.
func connectOnce(ctx context.Context, a *cli.App, h *Connection) error {
	var err error
	h.Client, err = a.Dial()
	if !errors.As(err, new(*apiclient.NoDaemon)) {
		return err
	}
	if h.own, err = host(ctx, a); err != nil {
		return err
	}
	if h.Client, err = a.Dial(); err != nil {
		return errors.Join(err, h.own.Close())
	}
	return nil
}

// host starts a daemon in this process. A repository without a fairlead.yaml has no agents;
// workflows whose steps are commands need none.
func host(ctx context.Context, a *cli.App) (*daemon.Daemon, error) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE) // as in up: closing a terminal must not end the daemon
	return daemon.OpenForRuns(ctx, a, "127.0.0.1:0", a.Logger(false))
}

// runActor is the actor that stops a daemon which ran in a command. A command that follows a run in
// it sees by this name that no person stopped the daemon, and takes over.
const runActor = "fairlead run"

// leaveQuiet is how long the command waits for other work without a message.
const leaveQuiet = 500 * time.Millisecond

// leave ends the connection. A daemon of this process stops first, like with `fairlead down`: running
// sessions finish, unless another signal comes; then they continue, and the next daemon adopts them.
func (h *Connection) leave(ctx context.Context, a *cli.App, wait bool) error {
	defer signal.Stop(h.signals)
	defer h.Client.Close()
	if h.own == nil {
		return nil
	}
	err := h.own.Engine.Agents.Stop(context.WithoutCancel(ctx), change.Actor{Kind: "human", ID: runActor}, false)
	if err != nil || !wait {
		return errors.Join(err, h.own.Close())
	}
	patience := time.NewTimer(leaveQuiet)
	defer patience.Stop()
	for {
		select {
		case <-patience.C:
			fmt.Fprintln(a.Err, "fairlead: waiting for other work of this repository to finish; Ctrl-C exits without waiting")
		case <-h.own.Engine.Loop.Stopped():
			return h.own.Close()
		case err := <-h.own.Ran:
			h.own.Ran <- nil
			return errors.Join(err, h.own.Close())
		case <-h.signals:
			fmt.Fprintln(a.Err, "fairlead: exiting now; running sessions continue, and the next `fairlead up` adopts them")
			return h.own.Close()
		}
	}
}
