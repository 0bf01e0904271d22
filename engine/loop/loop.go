package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
)

// Options are what a loop needs.
type Options struct {
	Journal journal.Journal
	Log     *slog.Logger

	// FileSum and DocumentSum identify the bytes of a projected file. The team keeps them with each
	// change, so that a file which another program wrote is recognised (SPEC X3).
	FileSum     func(control.File) string
	DocumentSum func(*crew.Document) string

	RunsOnly bool           // see team.Team
	Zone     *time.Location // of the days of --daily-cost-limit; nil: UTC

	At time.Time // the clock stays at this time, for reading an earlier moment; zero: it goes on
}

// Loop owns the team value. Make it with New, call Replay, Register the hooks, then call Run.
type Loop struct {
	opts    Options
	log     *slog.Logger
	ring    *ring
	hooks   []Hooks
	queue   chan Request
	quit    chan struct{}
	ready   chan struct{} // closed when recovery is over and the files are up to date
	stopped chan struct{} // closed when a requested stop is complete

	// Only the loop's goroutine reads or writes these.
	team     *team.Team
	touched  team.Touched // agents and runs that changes concerned, of which the consequences are not decided yet
	head     uint64
	versions map[string]uint64
	clock    clock
	unsaved  int  // changes since the last snapshot
	holding  bool // no action starts: recovery is not over, or the loop is ending
	spun     bool // the last deadline changed nothing

	ctx     context.Context
	cancel  context.CancelFunc // ends everything that Go started
	beside  sync.WaitGroup
	failure chan error // work beside the loop found that it must stop
	why     error      // why the loop ended; set before quit is closed
}

// Limits of the loop.
const (
	QueueMax      = 256    // requests that wait; then callers do
	BatchMax      = 256    // requests that share a sync; a batch of more than 1,000 changes is split, as the journal demands
	SnapshotEvery = 20_000 // changes; a start reads no more than these

	lookMax   = time.Minute // the loop wakes at least this often, so that a changed clock or a system sleep is noticed
	spinPause = time.Second // the pause after a deadline that changed nothing
)

// ErrClosed is the answer of a loop that has ended.
var ErrClosed = errors.New("fairlead has stopped; start it again with `fairlead up`")

// New makes a loop whose team is empty.
func New(ctx context.Context, opts Options) *Loop {
	l := &Loop{
		opts: opts, log: opts.Log, ring: newRing(),
		queue: make(chan Request, QueueMax), quit: make(chan struct{}), ready: make(chan struct{}), stopped: make(chan struct{}),
		versions: map[string]uint64{}, failure: make(chan error, 1), holding: true, clock: clock{fixed: opts.At},
	}
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return l
}

// Hooks are what one controller does in the loop's goroutine. Every field may be nil. Hooks run in
// the order of registration, must be quick, and must not wait for the loop.
type Hooks struct {
	// OnBatch takes in the changes of a batch when they are durable, before a watcher sees them or a caller gets its
	// answer, and marks in t what they concern. The first one has the sequence number first, and the others follow without
	// a gap.
	OnBatch func(changes []change.Change, first uint64, t *Touched)

	// Act starts the actions that the state asks for and that were not started yet. It is called when every controller has
	// taken in the batch, and after a batch without changes.
	Act func(t *Touched)

	// Next is the controller's next deadline; the zero time means that there is none.
	Next func() time.Time

	// Due are the requests of the deadlines that have passed.
	Due func(now time.Time) []Request

	// Settled says whether the controller's files are up to date, or cannot be written at present.
	// stopping: the daemon is about to end.
	Settled func(stopping bool) bool

	// Drain stops taking in what other programs write. The channel is closed when everything that
	// was taken in is in the queue.
	Drain func() <-chan struct{}
}

// Touched is what the changes of one batch concern.
type Touched struct {
	Agents map[string]bool
	Runs   map[string]bool
}

// Agent marks an agent.
func (t *Touched) Agent(name string) { t.Agents[name] = true }

// Run marks a run.
func (t *Touched) Run(id string) { t.Runs[id] = true }

func newTouched() Touched { return Touched{Agents: map[string]bool{}, Runs: map[string]bool{}} }

// Register adds a controller's hooks. It is called before Run.
func (l *Loop) Register(h Hooks) { l.hooks = append(l.hooks, h) }

// Run serves requests until ctx ends, the journal fails, or Fail is called. Begin must have been called.
func (l *Loop) Run(ctx context.Context) error {
	timer := time.NewTimer(lookMax)
	defer timer.Stop()
	for {
		l.checkReady()
		l.checkStopped()
		wait := l.UntilDue()
		if wait == 0 && ctx.Err() == nil { // before the queue: many requests must not delay a deadline
			if err := l.onTime(ctx); err != nil {
				return err
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return l.finish(ctx)
		case err := <-l.failure:
			return err
		case <-timer.C:
		case first := <-l.queue:
			if err := l.Step(ctx, l.gather(first)); err != nil {
				return err
			}
		}
	}
}

// Begin ends the recovery: what follows from the recovered state is decided and appended, and
// controllers may start actions from now on.
func (l *Loop) Begin(ctx context.Context) error {
	l.holding = false
	l.touched.All()
	var made batchDraft
	l.follows(&made)
	if err := l.commit(ctx, &made); err != nil {
		return err
	}
	touched := newTouched()
	l.announce(&made, &touched)
	return nil
}

// ActOnAll lets every controller start the actions of the whole team. Recovery calls it once.
func (l *Loop) ActOnAll() {
	t := newTouched()
	for _, name := range l.team.Names() {
		t.Agent(name)
	}
	for _, id := range l.team.RunIDs() {
		t.Run(id)
	}
	l.act(&t)
}

// finish decides what was submitted before the end, and keeps a snapshot.
func (l *Loop) finish(ctx context.Context) error {
	l.holding = true
	var drained []<-chan struct{}
	for _, h := range l.hooks {
		if h.Drain != nil {
			drained = append(drained, h.Drain())
		}
	}
	for _, done := range drained {
		if err := l.serveUntil(ctx, done); err != nil {
			return err
		}
	}
	for range QueueMax { // later callers are told that the loop has ended
		select {
		case first := <-l.queue:
			if err := l.Step(ctx, l.gather(first)); err != nil {
				return err
			}
		default:
			l.lastSnapshot(ctx)
			return nil
		}
	}
	l.lastSnapshot(ctx)
	return nil
}

func (l *Loop) serveUntil(ctx context.Context, done <-chan struct{}) error {
	for {
		select {
		case first := <-l.queue:
			if err := l.Step(ctx, l.gather(first)); err != nil {
				return err
			}
		case <-done:
			return nil
		}
	}
}

// gather takes what else waits in the queue: it shares the sync.
func (l *Loop) gather(first Request) []Request {
	batch := []Request{first}
	for len(batch) < BatchMax {
		select {
		case next := <-l.queue:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// UntilDue is the time to the next deadline.
func (l *Loop) UntilDue() time.Duration {
	next := time.Time{}
	for _, h := range l.hooks {
		if h.Next != nil {
			next = table.Earliest(next, h.Next())
		}
	}
	if next.IsZero() {
		return lookMax
	}
	wait := min(max(0, next.Sub(l.clock.now())), lookMax)
	if l.spun {
		wait = max(wait, spinPause)
	}
	return wait
}

// onTime decides what is due. A deadline that changes nothing would be due again immediately: that is
// a bug in Fairlead, and must not occupy a whole processor.
func (l *Loop) onTime(ctx context.Context) error {
	now := l.clock.now()
	var batch []Request
	for _, h := range l.hooks {
		if h.Due != nil {
			batch = append(batch, h.Due(now)...)
		}
	}
	head := l.head
	if err := l.Step(ctx, batch); err != nil {
		return err
	}
	timers := 0
	for _, req := range batch {
		if req.Event != nil {
			timers++
		}
	}
	spun := timers > 0 && l.head == head
	if spun && !l.spun {
		l.log.Error("a deadline changed nothing, which is a fault in fairlead; it is tried again every second", "event", describe(batch))
	}
	l.spun = spun
	return nil
}

func describe(batch []Request) string {
	for _, req := range batch {
		if req.Event != nil {
			return fmt.Sprintf("%T of agent %q, run %q", req.Event.What, req.Event.Agent, req.Event.Run)
		}
	}
	return ""
}

func (l *Loop) settled(stopping bool) bool {
	for _, h := range l.hooks {
		if h.Settled != nil && !h.Settled(stopping) {
			return false
		}
	}
	return true
}

// checkReady notices that the start is over.
func (l *Loop) checkReady() {
	select {
	case <-l.ready:
	default:
		if !l.settled(false) {
			return
		}
		close(l.ready)
	}
}

// checkStopped notices that a requested stop is complete.
func (l *Loop) checkStopped() {
	select {
	case <-l.stopped:
	default:
		if l.team.Stopping && l.team.Idle() && l.settled(true) {
			close(l.stopped)
		}
	}
}

// Ready is closed when the recovery is over, the files are up to date (or cannot be written), and
// requests are taken.
func (l *Loop) Ready() <-chan struct{} { return l.ready }

// Stopped is closed when a requested stop is complete: no session runs, and every file says so.
func (l *Loop) Stopped() <-chan struct{} { return l.stopped }

// Go runs work beside the loop. Its context ends with the loop, and Shutdown waits for it.
func (l *Loop) Go(do func(ctx context.Context)) {
	l.beside.Add(1)
	go func() {
		defer l.beside.Done()
		do(l.ctx)
	}()
}

// Context ends when the loop ends.
func (l *Loop) Context() context.Context { return l.ctx }

// Fail ends Run with an error that was found beside the loop. Nothing more is decided; agents go on
// running.
func (l *Loop) Fail(err error) {
	select {
	case l.failure <- err:
	default: // another failure is on its way
	}
}

// Shutdown ends the work beside the loop and answers everyone who still waits. why is the error of
// Run, or nil.
func (l *Loop) Shutdown(why error) {
	l.why = why
	close(l.quit)
	l.cancel()
	l.ring.close(l.Closed())
	l.beside.Wait()
}

// Quit is closed when the loop has ended.
func (l *Loop) Quit() <-chan struct{} { return l.quit }

// Closed is the error for callers of a loop that has ended. It may be called once Quit is closed.
func (l *Loop) Closed() error {
	if l.why != nil {
		return fmt.Errorf("%w; it stopped because: %w", ErrClosed, l.why)
	}
	return ErrClosed
}

// State is the team value. Only functions that run in the loop may call it: hooks, and the functions
// of a Request. Others use View.
func (l *Loop) State() *team.Team { return l.team }

// Now is the loop's clock, for everyone.
func (l *Loop) Now() time.Time { return l.clock.now() }

// Head is the sequence number of the last change. Only functions that run in the loop may call it.
func (l *Loop) Head() uint64 { return l.head }

// Entities are the versions of all entities in the journal, by name. Only functions that run in the
// loop may call it.
func (l *Loop) Entities() map[string]uint64 { return l.versions }

// Holding says that no action may start: the recovery is not over, or the loop is ending.
// Only functions that run in the loop may call it.
func (l *Loop) Holding() bool { return l.holding }

// Journal is the history, for reading.
func (l *Loop) Journal() journal.Journal { return l.opts.Journal }

// Unsaved is how many changes came since the last snapshot. Only functions that run in the loop may
// call it.
func (l *Loop) Unsaved() int { return l.unsaved }

// SnapshotNow makes the next batch keep a snapshot. Only functions that run in the loop may call it.
func (l *Loop) SnapshotNow() { l.unsaved = SnapshotEvery }
