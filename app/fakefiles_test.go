package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/files/exchange"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// errDead is the result of every operation of a crashed supervisor.
var errDead = errors.New("this engine is dead")

// crashPoint counts a supervisor's acts and crashes it at one of them. The last act succeeds
// without an answer, or does not happen.
type crashPoint struct {
	mu     sync.Mutex
	acts   []string
	last   int // 0: it never crashes
	undone bool
	dead   chan struct{}
}

func newCrashPoint(last int, undone bool) *crashPoint {
	return &crashPoint{last: last, undone: undone, dead: make(chan struct{})}
}

func (f *crashPoint) isDead() bool {
	select {
	case <-f.dead:
		return true
	default:
		return false
	}
}

// act performs an act unless the supervisor has crashed. It does not hold the lock meanwhile, so
// that a slow act, such as an append, delays no other one.
func (f *crashPoint) act(what string, do func()) error {
	f.mu.Lock()
	if f.isDead() {
		f.mu.Unlock()
		return errDead
	}
	f.acts = append(f.acts, what)
	last := len(f.acts) == f.last
	if last {
		close(f.dead)
	}
	f.mu.Unlock()
	if !last {
		do()
		return nil
	}
	if !f.undone {
		do()
	}
	return errDead
}

// die crashes the supervisor now.
func (f *crashPoint) die() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isDead() {
		close(f.dead)
	}
}

func (f *crashPoint) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.acts)
}

// crashingJournal is a journal whose appends are acts of a crashPoint.
type crashingJournal struct {
	journal.Journal
	crashPoint *crashPoint
}

func (m crashingJournal) Append(ctx context.Context, batch []journal.Change, expect ...journal.Expect) (last uint64, err error) {
	dead := m.crashPoint.act(fmt.Sprintf("append %d", len(batch)), func() { last, err = m.Journal.Append(ctx, batch, expect...) })
	if dead != nil {
		return 0, dead
	}
	return last, err
}

// fakeDisk holds every agent_state.json. It outlives supervisors, which watch it through a
// fakeFiles.
type fakeDisk struct {
	mu    sync.Mutex
	files map[string][]byte
	watch *fakeFiles // of the running supervisor, if any
}

func newFakeDisk() *fakeDisk { return &fakeDisk{files: map[string][]byte{}} }

func (d *fakeDisk) text(agent string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files[agent]
}

func (d *fakeDisk) state(agent string) agentstate.State {
	s, _ := agentstate.Parse(d.text(agent))
	return s
}

// put is another program's write; nil deletes the file.
func (d *fakeDisk) put(agent string, text []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if text == nil {
		delete(d.files, agent)
	} else {
		d.files[agent] = text
	}
	if d.watch != nil {
		d.watch.noticed(agent)
	}
}

// writeDesired writes a desired state, as another program does.
func (d *fakeDisk) writeDesired(agent, desired, note string, at time.Time) {
	d.mu.Lock()
	s, _ := agentstate.Parse(d.files[agent])
	d.mu.Unlock()
	s.DesiredState, s.SetBy, s.Note, s.Timestamp = desired, agentstate.SetByHuman, note, file.FormatTime(at)
	if s.CurrentState == "" {
		s.CurrentState = agentstate.Pause
	}
	d.put(agent, s.Render())
}

// fakeFiles implements agentstate.Files as documented, without a file system.
type fakeFiles struct {
	disk       *fakeDisk
	crashPoint *crashPoint
	to         func(agentstate.Seen)
	wake       chan struct{}
	done       chan struct{}
	ran        sync.WaitGroup

	// Under the disk's lock:
	seq   uint64
	now   map[string]agentstate.Seen
	taken map[string]uint64
	queue []agentstate.Seen

	adding, reading, writing hook
	handing                  hook // called before an observation is delivered
	writes                   int
}

func newFakeFiles(disk *fakeDisk, f *crashPoint) *fakeFiles {
	w := &fakeFiles{
		disk: disk, crashPoint: f, wake: make(chan struct{}, 1), done: make(chan struct{}),
		now: map[string]agentstate.Seen{}, taken: map[string]uint64{},
	}
	w.ran.Go(w.handOut)
	return w
}

func (w *fakeFiles) close() {
	w.disk.mu.Lock()
	if w.disk.watch == w {
		w.disk.watch = nil
	}
	w.disk.mu.Unlock()
	close(w.done)
	w.ran.Wait()
}

func (w *fakeFiles) handOut() {
	for {
		w.disk.mu.Lock()
		var next agentstate.Seen
		some := len(w.queue) > 0
		if some {
			next, w.queue = w.queue[0], w.queue[1:]
		}
		w.disk.mu.Unlock()
		if !some {
			select {
			case <-w.wake:
				continue
			case <-w.done:
				return
			}
		}
		_ = w.handing.ask(next.Name)
		w.to(next)
	}
}

// noticed reads a file; the caller holds the disk's lock.
func (w *fakeFiles) noticed(agent string) {
	was, watched := w.now[agent]
	if !watched {
		return
	}
	text, there := w.disk.files[agent]
	if there == (was.Kind != exchange.KindDeleted) && slices.Equal(text, was.Bytes) {
		return
	}
	w.seq++
	s := agentstate.Seen{Name: agent, Seq: w.seq, Kind: exchange.KindDeleted, At: time.Now().UTC()}
	if there {
		s.Bytes, s.Sum, s.Changed = text, file.SumOf(text), s.At
		state, err := agentstate.Parse(text)
		s.Kind, s.State = exchange.KindWritten, state
		if err != nil {
			s.Kind, s.Fault, s.KeptAs = exchange.KindMalformed, err.Error(), "kept"
		}
	}
	w.now[agent] = s
	w.queue = append(w.queue, s)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *fakeFiles) Add(agent, _ string) error {
	if err := w.adding.ask(agent); err != nil {
		return err
	}
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	if _, twice := w.now[agent]; twice {
		return errors.New("the file is watched already")
	}
	w.disk.watch = w
	w.now[agent] = agentstate.Seen{Name: agent, Kind: exchange.KindDeleted}
	w.noticed(agent)
	return nil
}

func (w *fakeFiles) Deliver(to func(agentstate.Seen)) { w.to = to }

func (w *fakeFiles) Read(agent string) (agentstate.Seen, error) {
	if err := w.reading.ask(agent); err != nil {
		return agentstate.Seen{}, err
	}
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	s, ok := w.now[agent]
	if !ok {
		return s, errors.New("not watched")
	}
	return s, nil
}

func (w *fakeFiles) Confirm(seen agentstate.Seen) {
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	w.taken[seen.Name] = max(w.taken[seen.Name], seen.Seq)
}

func (w *fakeFiles) Write(_ context.Context, agent string, content []byte, newest uint64, isOurs func(file.Sum) bool) error {
	if err := w.writing.ask(agent); err != nil {
		return err
	}
	var changed error
	err := w.crashPoint.act("write "+agent+" "+oneLine(content), func() {
		w.disk.mu.Lock()
		defer w.disk.mu.Unlock()
		s := w.now[agent]
		ours := s.Own || s.Kind == exchange.KindWritten && isOurs(s.Sum)
		if s.Seq > newest && !s.Own || !ours && s.Seq > w.taken[agent] {
			changed = &agentstate.Changed{Seen: s}
			return
		}
		w.seq++
		w.writes++
		state, _ := agentstate.Parse(content)
		w.now[agent] = agentstate.Seen{
			Name: agent, Seq: w.seq, Kind: exchange.KindWritten, Bytes: content, State: state, Sum: file.SumOf(content), Own: true,
		}
		w.disk.files[agent] = content
	})
	if err != nil {
		return err
	}
	return changed
}

func oneLine(content []byte) string {
	s, _ := agentstate.Parse(content)
	return strings.Join([]string{s.DesiredState, s.CurrentState}, "/")
}
