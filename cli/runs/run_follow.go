package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/view"
)

// How often a followed run is read. The journal reports each change, but the view of a run with
// 1,000 steps is too big to request after each of them.
const (
	lookQuiet  = 100 * time.Millisecond // after the last change
	lookSeldom = time.Second            // at least, while changes keep coming
	waitSettle = 300 * time.Millisecond // how long a run must wait before --no-wait ends: a gate file may not have been read yet
	fileLook   = 5 * time.Millisecond   // between two checks whether the file has caught up
	drainMost  = 2 * time.Second        // for the last changes, which are in the journal already
)

// face is how a followed run is displayed.
type face interface {
	Change(ch api.Change) error     // each change of the run, once and in order
	Look(view view.RunView)         // the current view, from time to time
	say(format string, args ...any) // a message to the person at the terminal
	done()
}

// Voyage is one run that is followed to its end.
type Voyage struct {
	h      *Helm
	id     string
	noWait bool
	face   face

	view    view.RunView
	seen    time.Time         // when it was read last
	waits   time.Time         // when it began to wait; zero: it does not
	open    map[string]string // steps that are not over, and their states
	Asked   int               // signals so far
	last    uint64            // the last sequence of the journal that was received
	left    bool              // the daemon stops, because the command that ran it is over
	changes chan api.Change
	ended   chan error
}

// errLeft says that the person stopped following the run while the daemon continues.
var errLeft = &cli.Coded{Code: cli.ExitCancelled, Err: errors.New("stopped following; the run continues")}

// follow shows the run from the change after `from` until it is over, or waits with --no-wait, or a
// signal ends the command. It returns the final view.
func (v *Voyage) follow(ctx context.Context, from uint64) (view.RunView, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	v.last, v.open = from, map[string]string{}
	v.changes, v.ended = make(chan api.Change), make(chan error, 1)
	go v.listen(ctx, from)
	due := time.NewTimer(0) // it may be over already
	defer due.Stop()
	for {
		select {
		case ch := <-v.changes:
			v.last = ch.Seq
			v.left = v.left || ch.Machine == "team" && ch.Actor.ID == runActor
			if !v.about(ch.Entity) {
				continue
			}
			if err := v.face.Change(ch); err != nil {
				return v.view, err
			}
			switch {
			case v.decides(ch) || time.Since(v.seen) > lookSeldom:
				due.Reset(0)
			default:
				due.Reset(lookQuiet)
			}
		case <-due.C:
			over, err := v.Look(ctx)
			if err != nil {
				return v.view, err
			}
			if over {
				err := v.settle(ctx)
				return v.view, err
			}
			due.Reset(v.again())
		case sig := <-v.h.signals:
			if err := v.signal(ctx, sig); err != nil {
				return v.view, err
			}
			due.Reset(0)
		case err := <-v.ended:
			return v.view, err
		}
	}
}

// listen passes on changes of the journal.
func (v *Voyage) listen(ctx context.Context, from uint64) {
	query := apiclient.EventsQuery{After: int64(from)} //nolint:gosec // no journal is that long
	for ch, err := range v.h.Events(ctx, query) {
		if err != nil {
			v.ended <- err
			return
		}
		select {
		case v.changes <- ch:
		case <-ctx.Done():
			return
		}
	}
	v.ended <- ctx.Err()
}

// about reports whether a change belongs to the run.
func (v *Voyage) about(entity string) bool {
	rest, ok := strings.CutPrefix(entity, "run/"+v.id)
	return ok && (rest == "" || rest[0] == '/')
}

// decides reports whether the run may be over, or wait, after a change: then its view is read at
// once. A step's change cannot decide that while other steps are open.
func (v *Voyage) decides(ch api.Change) bool {
	step, ok := strings.CutPrefix(ch.Entity, "run/"+v.id+"/")
	switch {
	case ch.Machine == "session":
		return false // the step's change has the result
	case !ok:
		return true // the run itself, or many of its steps
	}
	switch workflow.State(ch.To) {
	case workflow.Completed, workflow.Skipped:
		delete(v.open, step)
		return len(v.open) == 0
	case workflow.Failed, workflow.Waiting:
		return true
	}
	v.open[step] = ch.To
	return false
}

// Look reads the run's view, and reports whether there is nothing more to wait for.
func (v *Voyage) Look(ctx context.Context) (over bool, err error) {
	view, err := v.h.Runs.Show(ctx, v.id)
	if err != nil {
		return false, err
	}
	v.view, v.seen, v.open = view, time.Now(), map[string]string{}
	for _, s := range view.Steps {
		if s.Status != string(workflow.Completed) && s.Status != string(workflow.Skipped) {
			v.open[s.ID] = s.Status
		}
	}
	v.face.Look(view)
	switch workflow.Status(view.Status) {
	case workflow.IsCompleted, workflow.IsFailed, workflow.IsCancelled:
		return true, nil
	case workflow.IsWaiting:
		if v.Asked > 0 {
			return true, nil // it is paused, and running steps have finished
		}
		if v.waits.IsZero() {
			v.waits = time.Now()
		}
		return v.noWait && time.Since(v.waits) >= waitSettle, nil
	}
	v.waits = time.Time{}
	return false, nil
}

// again is when the run is read next if nothing happens.
func (v *Voyage) again() time.Duration {
	if v.noWait && !v.waits.IsZero() {
		return waitSettle
	}
	return lookSeldom
}

// signal handles Ctrl-C or SIGTERM. If another process is the daemon, the run continues there.
// Otherwise the first signal pauses the run and lets running steps finish, the second cancels it,
// and the third exits and leaves everything to the next daemon.
func (v *Voyage) signal(ctx context.Context, _ os.Signal) error {
	if v.h.own == nil {
		v.face.say("the run continues in the daemon: `fairlead run show %[1]s` shows it, `fairlead run cancel %[1]s` ends it", v.id)
		return errLeft
	}
	v.Asked++
	var err error
	switch v.Asked {
	case 1:
		_, err = v.h.Runs.Pause(ctx, v.id, "interrupted at the keyboard")
		if at := atWork(v.view); len(at) > 0 {
			v.face.say("paused; waiting for %s to finish. A second signal ends them and cancels the run. To continue later: `fairlead run resume %s`", strings.Join(at, ", "), v.id)
		}
	case 2:
		_, err = v.h.Runs.Cancel(ctx, v.id, "", "interrupted twice at the keyboard")
		v.face.say("cancelled; ending running steps. To continue later: `fairlead run resume %s`", v.id)
	default:
		v.face.say("exiting now; running steps continue, and `fairlead run resume %s` or `fairlead up` adopts them", v.id)
		return errLeft
	}
	var refused *apiclient.Refused
	if errors.As(err, &refused) {
		return nil // it has ended meanwhile, which the next read shows
	}
	return err
}

// atWork names the steps that run.
func atWork(view view.RunView) []string {
	var names []string
	for _, s := range view.Steps {
		if s.Status == string(workflow.Running) {
			names = append(names, s.ID)
		}
	}
	return names
}

// settle waits until run_state.json matches the journal, so that the caller can read it, and shows
// what is not shown yet.
func (v *Voyage) settle(ctx context.Context) error {
	if err := v.drain(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cli.FileWait)
	defer cancel()
	for v.view.FileBehind {
		if cli.Pause(ctx, fileLook) != nil {
			v.face.say("%s is not up to date yet; the disk may be full", v.view.StateFile)
			return nil
		}
		view, err := v.h.Runs.Show(ctx, v.id)
		if err != nil {
			return err
		}
		v.view = view
	}
	return nil
}

// drain shows the changes that are in the journal but have not arrived on the stream.
func (v *Voyage) drain(ctx context.Context) error {
	page, err := v.h.Journal(ctx, apiclient.JournalQuery{Tail: 1})
	if err != nil {
		return fmt.Errorf("read the end of the journal: %w", err)
	}
	enough := time.NewTimer(drainMost)
	defer enough.Stop()
	for v.last < page.Head {
		select {
		case ch := <-v.changes:
			v.last = ch.Seq
			if v.about(ch.Entity) {
				if err := v.face.Change(ch); err != nil {
					return err
				}
			}
		case err := <-v.ended: // the daemon stops: there will be no more changes
			return err
		case <-enough.C:
			return nil
		}
	}
	return nil
}
