package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/read/view"
)

// How often a followed run is read. The journal reports each change, but the view of a run with
// 1,000 steps is too big to request after each of them.
const (
	lookQuiet  = 100 * time.Millisecond // after the last change
	lookSeldom = time.Second            // at least, while changes keep coming
	waitSettle = 300 * time.Millisecond // how long a run must wait before --no-wait ends: a gate file may not have been read yet
	fileLook   = 5 * time.Millisecond   // between the first two checks whether the file has caught up, or the worktree is removed

	worktreeMost = time.Minute     // for the removal of a worktree: all of its files are saved in git first
	drainMost    = 2 * time.Second // for the last changes, which are in the journal already
)

// display is how a followed run is displayed.
type display interface {
	Change(ch api.Change) error     // each change of the run, once and in order
	Look(view view.RunView)         // the current view, from time to time
	say(format string, args ...any) // a message to the person at the terminal
	warn(text string)               // a warning, also for a program that reads the output
	done()
}

// Follower is one run that is followed to its end.
type Follower struct {
	h       *Connection
	id      string
	noWait  bool
	display display

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
func (v *Follower) follow(ctx context.Context, from uint64) (view.RunView, error) {
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
			if err := v.show(ch); err != nil {
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
func (v *Follower) listen(ctx context.Context, from uint64) {
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
func (v *Follower) about(entity string) bool {
	rest, ok := strings.CutPrefix(entity, "run/"+v.id)
	return ok && (rest == "" || rest[0] == '/')
}

// decides reports whether the run may be over, or wait, after a change: then its view is read at
// once. A step's change cannot decide that while other steps are open.
func (v *Follower) decides(ch api.Change) bool {
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
func (v *Follower) Look(ctx context.Context) (over bool, err error) {
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
	v.display.Look(view)
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
func (v *Follower) again() time.Duration {
	if v.noWait && !v.waits.IsZero() {
		return waitSettle
	}
	return lookSeldom
}

// signal handles Ctrl-C or SIGTERM. If another process is the daemon, the run continues there.
// Otherwise the first signal pauses the run and lets running steps finish, the second cancels it,
// and the third exits and leaves everything to the next daemon.
func (v *Follower) signal(ctx context.Context, _ os.Signal) error {
	if v.h.own == nil {
		v.display.say("the run continues in the daemon: `fairlead run show %[1]s` shows it, `fairlead run cancel %[1]s` ends it", v.id)
		return errLeft
	}
	v.Asked++
	var err error
	switch v.Asked {
	case 1:
		_, err = v.h.Runs.Pause(ctx, v.id, "interrupted at the keyboard")
		if at := atWork(v.view); len(at) > 0 {
			v.display.say("paused; waiting for %s to finish. A second signal ends them and cancels the run. To continue later: `fairlead run resume %s`", strings.Join(at, ", "), v.id)
		}
	case 2:
		_, err = v.h.Runs.Cancel(ctx, v.id, "", "interrupted twice at the keyboard")
		v.display.say("cancelled; ending running steps. To continue later: `fairlead run resume %s`", v.id)
	default:
		v.display.say("exiting now; running steps continue, and `fairlead run resume %s` or `fairlead up` adopts them", v.id)
		return errLeft
	}
	if _, ok := errors.AsType[*apiclient.Refused](err); ok {
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
func (v *Follower) settle(ctx context.Context) error {
	if err := v.drain(ctx); err != nil {
		return err
	}
	if done, err := v.settled(ctx, cli.FileWait, func() bool { return !v.view.FileBehind }); err != nil {
		return err
	} else if !done {
		v.display.say("%s is not up to date yet; the disk may be full", v.view.StateFile)
	}
	if done, err := v.settled(ctx, worktreeMost, func() bool { return !v.view.WorktreeBusy }); err != nil {
		return err
	} else if !done {
		v.display.say("the worktree %s is not removed yet; the next start of Fairlead here goes on with that", v.view.Worktree)
	}
	return nil
}

// settled reads the run's view until something holds in it. It gives up after a time, or with a signal.
func (v *Follower) settled(ctx context.Context, most time.Duration, holds func() bool) (bool, error) {
	wait := fileLook
	for until := time.Now().Add(most); !holds(); wait = min(2*wait, lookQuiet) {
		if time.Now().After(until) {
			return false, nil
		}
		select {
		case <-v.h.signals:
			return false, nil
		case <-time.After(wait):
		case <-ctx.Done():
			return false, nil
		}
		view, err := v.h.Runs.Show(ctx, v.id)
		if err != nil {
			return false, err
		}
		v.view = view
	}
	return true, nil
}

// drain shows the changes that are in the journal but have not arrived on the stream.
func (v *Follower) drain(ctx context.Context) error {
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
				if err := v.show(ch); err != nil {
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

// show shows a change of the run, and warns about what it has reached.
func (v *Follower) show(ch api.Change) error {
	body, _ := team.BodyOf(ch.Data) // one of a newer version warns of nothing
	if note := change.As[team.NoteSet](body); note != nil && note.Warned.Day != "" {
		v.display.warn(cli.Line(view.WarnedWords(note.Warned), cli.ErrorWidth))
	}
	return v.display.Change(ch)
}

// jsonDisplay is for programs: each change of the run as `fairlead events --json` prints it.
type jsonDisplay struct{ a *cli.App }

// Change prints one change of the run.
func (f jsonDisplay) Change(ch api.Change) error { return f.a.PrintJSON(ch) }

// Look prints what changed since the last view of the run.
func (jsonDisplay) Look(view.RunView)  {}
func (jsonDisplay) say(string, ...any) {}
func (f jsonDisplay) warn(text string) { printWarnings(f.a, []string{text}) }
func (jsonDisplay) done()              {}

// LineDisplay is for a log or a pipe: a line for each change that matters to a person.
type LineDisplay struct {
	A     *cli.App
	Id    string
	width int // of the longest step name so far
}

// Look prints what changed since the last view of the run.
func (f *LineDisplay) Look(view view.RunView) {
	for _, s := range view.Steps {
		f.width = min(max(f.width, len(s.ID)), cli.StepWidth)
	}
}

func (f *LineDisplay) done() {}

func (f *LineDisplay) warn(text string) { printWarnings(f.A, []string{text}) }

func (f *LineDisplay) say(format string, args ...any) {
	fmt.Fprintln(f.A.Err, "fairlead: "+cli.Plain(fmt.Sprintf(format, args...)))
}

// Change prints one change of the run.
func (f *LineDisplay) Change(ch api.Change) error {
	for _, told := range tell(f.A, f.Id, ch) {
		if _, err := fmt.Fprintf(f.A.Out, "%s  %-*s  %s\n", ch.Time.Local().Format(time.TimeOnly), f.width,
			cli.Line(told.step, cli.StepWidth), told.text); err != nil {
			return err
		}
	}
	return nil
}

// sentence is about one step, or about the run if step is empty.
type sentence struct{ step, text string }

// tell describes a change of a run; most changes are not shown and give nothing.
func tell(a *cli.App, id string, ch api.Change) []sentence {
	body, _ := team.BodyOf(ch.Data)
	run := change.As[workflow.Body](body)
	if run == nil {
		return nil // perhaps of a newer version; `fairlead events` shows it unchanged
	}
	step, _ := strings.CutPrefix(ch.Entity, "run/"+id+"/")
	switch {
	case run.Head != nil:
		return tellRun(a, ch, run.Head)
	case run.Step != nil:
		if text := tellStep(a, id, step, ch, run.Step); text != "" {
			return []sentence{{step, text}}
		}
	case run.Reset != nil && run.Reset.Gate != "":
		return []sentence{{
			string(run.Reset.Gate),
			a.Paint(cli.Yellow, "sends the run back to "+cli.Line(string(run.Reset.Target), cli.StepWidth)) + behind(len(run.Reset.Moves)),
		}}
	case run.Moved != nil && run.Moved.To == workflow.Skipped:
		var all []sentence
		for _, move := range run.Moved.Moves {
			all = append(all, sentence{string(move.Step), a.Paint(cli.Dim, "skipped: there is nothing to do")})
		}
		return all
	}
	return nil
}

// behind says how many steps go back with a gate's target.
func behind(moves int) string {
	if moves < 2 {
		return ""
	}
	return fmt.Sprintf("; %d steps are done again", moves)
}

func tellRun(a *cli.App, ch api.Change, head *workflow.Head) []sentence {
	why := ""
	if head.Why != "" {
		why = ": " + cli.Line(head.Why, cli.ErrorWidth)
	}
	switch workflow.RunEvent(ch.Trigger) {
	case workflow.RunPaused:
		return []sentence{{"", a.Paint(cli.Yellow, "paused by "+cli.Line(head.By, cli.StepWidth)) + why}}
	case workflow.RunReleased:
		return []sentence{{"", "released by " + cli.Line(head.By, cli.StepWidth) + why}}
	case workflow.RunResumed:
		return []sentence{{"", "resumed by " + cli.Line(head.By, cli.StepWidth) + why}}
	case workflow.RunCancelled:
		return []sentence{{"", a.Paint(cli.Yellow, "cancelled by "+cli.Line(head.By, cli.StepWidth)) + why}}
	}
	return nil
}

func tellStep(a *cli.App, id, step string, ch api.Change, set *workflow.StepSet) string {
	v := set.Value
	failure := cli.Line(v.LastError, cli.ErrorWidth)
	switch workflow.Event(ch.Trigger) {
	case workflow.ProcessDeparted:
		return "" // of an attempt whose end was shown before
	case workflow.Started, workflow.AnsweredFirst:
		return "began" + which(v)
	case workflow.Adopted:
		return "continues: it outlived the daemon that started it" + which(v)
	case workflow.RunnerDied:
		return a.Paint(cli.Yellow, "its outcome is unknown; it is run again") + cli.Why(failure)
	case workflow.FailedTriesLeft:
		return a.Paint(cli.Yellow, fmt.Sprintf("failed (attempt %d), retried in %s", v.Attempts, cli.Ago(v.RetryAt.Sub(ch.Time)))) +
			cli.Why(failure)
	case workflow.Answered, workflow.Rejected:
		return "answered by " + cli.Line(ch.Actor.ID, cli.StepWidth)
	case workflow.AnswerFaulty:
		return a.Paint(cli.Yellow, "the answer is not valid") + cli.Why(cli.Line(v.Fault, cli.ErrorWidth))
	case workflow.ItemDone:
		return fmt.Sprintf("%s %d done", itemOr(v), v.Done)
	case workflow.GateFailed:
		return a.Paint(cli.Yellow, "completed"+took(v)) + cli.Why(failure)
	}
	switch workflow.State(ch.To) {
	case workflow.Completed:
		return a.Paint(cli.Green, "completed") + took(v) + made(set.Facts) + denied(a, set.Facts)
	case workflow.Failed:
		return a.Paint(cli.Red, "failed") + took(v) + cli.Why(failure)
	case workflow.Waiting:
		return a.Paint(cli.Yellow, "waits for a person") +
			fmt.Sprintf(": fairlead approve %s %s (or reject)", id, cli.Line(step, cli.PathWidth))
	case workflow.Skipped:
		return a.Paint(cli.Dim, "skipped: its condition does not hold")
	}
	return ""
}

// itemOr is what a loop counts: its items, or the rounds until its condition holds.
func itemOr(v workflow.Value) string {
	if v.Found {
		return "item"
	}
	return "round"
}

// which names the attempt, the iteration and the item, unless they are the first.
func which(v workflow.Value) string {
	var parts []string
	if v.Attempts > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", v.Attempts))
	}
	if v.Iteration > 0 {
		parts = append(parts, fmt.Sprintf("iteration %d", v.Iteration+1))
	}
	if v.Found {
		parts = append(parts, fmt.Sprintf("item %d", v.Index+1))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func took(v workflow.Value) string {
	if v.StartedAt.IsZero() || v.EndedAt.Before(v.StartedAt) {
		return ""
	}
	return " in " + cli.Ago(v.EndedAt.Sub(v.StartedAt))
}

// madeMost is how many artifacts a line names.
const madeMost = 3

func made(facts *workflow.Facts) string {
	if facts == nil || len(facts.Artifacts) == 0 {
		return ""
	}
	text := "  " + cli.Line(strings.Join(facts.Artifacts[:min(madeMost, len(facts.Artifacts))], ", "), 100)
	if more := len(facts.Artifacts) - madeMost; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// denied says what the step's agent was denied, although the step succeeded, and what of its report a limit has cut.
func denied(a *cli.App, facts *workflow.Facts) string {
	if facts == nil {
		return ""
	}
	text := cli.Line(strings.Join(append(slices.Clone(facts.Denied), facts.Cut...), "; "), cli.ErrorWidth)
	if text == "" {
		return ""
	}
	return "  " + a.Paint(cli.Yellow, text)
}
