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

// How a run that is followed is looked at. The journal tells each change; how the run as a
// whole stands is asked for, and a run of 1,000 steps is too much to ask for at each of them.
const (
	lookQuiet  = 100 * time.Millisecond // after the last change
	lookSeldom = time.Second            // at least, while changes never cease
	waitSettle = 300 * time.Millisecond // that a run has to wait before --no-wait believes it: a gate file may not have been read
	fileLook   = 5 * time.Millisecond   // between two looks whether the file has caught up
	drainMost  = 2 * time.Second        // for the last changes, which are in the journal already
)

// face is how a run that is followed is shown.
type face interface {
	Change(ch api.Change) error     // each change of the run, once and in order
	Look(view view.RunView)         // how it stands, now and then
	say(format string, args ...any) // what the person at the keyboard should know
	done()
}

// Voyage is one run that is followed to its end.
type Voyage struct {
	a      *cli.App
	h      *Helm
	id     string
	noWait bool
	face   face

	view    view.RunView
	seen    time.Time         // when it was looked at last
	waits   time.Time         // since when it waits; zero: it does not
	open    map[string]string // steps that are not over, and where they stand
	Asked   int               // signals so far
	last    uint64            // of the journal, that was heard
	left    bool              // the daemon stops, since the verb is over that was it
	changes chan api.Change
	ended   chan error
}

// errLeft says that a person does not look on any longer, while the daemon goes on.
var errLeft = &cli.Coded{Code: cli.ExitCancelled, Err: errors.New("not looking on any longer; the run goes on")}

// follow shows the run from the change after `from` on until it is over, or waits and nobody
// wants to wait, or somebody has had enough. The view is how it stands then.
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

// listen passes the journal on.
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

// about says whether a change is the run's.
func (v *Voyage) about(entity string) bool {
	rest, ok := strings.CutPrefix(entity, "run/"+v.id)
	return ok && (rest == "" || rest[0] == '/')
}

// decides says whether the run may be over, or wait, after a change: then it is looked at at
// once. A step that goes from one state to the next does not decide that while others are open.
func (v *Voyage) decides(ch api.Change) bool {
	step, ok := strings.CutPrefix(ch.Entity, "run/"+v.id+"/")
	switch {
	case ch.Machine == "session":
		return false // what came of it, the step says
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

// Look asks how the run stands, and says whether there is nothing more to wait for.
func (v *Voyage) Look(ctx context.Context) (over bool, err error) {
	view, err := v.h.Run(ctx, v.id)
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
			return true, nil // it is paused, and what was at work has finished
		}
		if v.waits.IsZero() {
			v.waits = time.Now()
		}
		return v.noWait && time.Since(v.waits) >= waitSettle, nil
	}
	v.waits = time.Time{}
	return false, nil
}

// again is when the run is looked at next where nothing happens.
func (v *Voyage) again() time.Duration {
	if v.noWait && !v.waits.IsZero() {
		return waitSettle
	}
	return lookSeldom
}

// signal is Ctrl-C, or SIGTERM. Somebody else's daemon goes on with the run. With one of our
// own the first pauses the run and lets what is at work finish, the second cancels it, and
// the third leaves everything as it is to whoever comes next.
func (v *Voyage) signal(ctx context.Context, _ os.Signal) error {
	if v.h.own == nil {
		v.face.say("the run goes on in the daemon: `fairlead run show %[1]s` shows it, `fairlead run cancel %[1]s` ends it", v.id)
		return errLeft
	}
	v.Asked++
	var err error
	switch v.Asked {
	case 1:
		_, err = v.h.PauseRun(ctx, v.id, "interrupted at the keyboard")
		if at := atWork(v.view); len(at) > 0 {
			v.face.say("paused; waiting for %s to finish. Once more ends that and cancels the run. To go on later: `fairlead run resume %s`", strings.Join(at, ", "), v.id)
		}
	case 2:
		_, err = v.h.CancelRun(ctx, v.id, "", "interrupted twice at the keyboard")
		v.face.say("cancelled; ending what is at work. To go on later all the same: `fairlead run resume %s`", v.id)
	default:
		v.face.say("going now; what still runs goes on, and `fairlead run resume %s` or `fairlead up` finds it", v.id)
		return errLeft
	}
	var refused *apiclient.Refused
	if errors.As(err, &refused) {
		return nil // it has come to its end meanwhile, which the next look sees
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

// settle waits until run_state.json says what the journal does, so that whoever called us can
// read it, and shows what is not shown yet.
func (v *Voyage) settle(ctx context.Context) error {
	if err := v.drain(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cli.FileWait)
	defer cancel()
	for v.view.FileBehind {
		if cli.Pause(ctx, fileLook) != nil {
			v.face.say("%s does not say so yet; the disk may be full", v.view.StateFile)
			return nil
		}
		view, err := v.h.Run(ctx, v.id)
		if err != nil {
			return err
		}
		v.view = view
	}
	return nil
}

// drain shows what the journal holds already, and the stream has not told yet.
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
		case err := <-v.ended: // the daemon goes: what was told is all there is
			return err
		case <-enough.C:
			return nil
		}
	}
	return nil
}
