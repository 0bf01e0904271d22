package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/interop"
	"github.com/fairlead-dev/fairlead/journal"
)

// errDead is what an engine meets after its death: nothing that it does has any effect.
var errDead = errors.New("this engine is dead")

// fate counts what an engine does to the world, and kills it after a number of acts: the
// last one is done and nobody hears of it, or it is not done at all.
type fate struct {
	mu     sync.Mutex
	acts   []string
	last   int // 0: it lives for ever
	undone bool
	dead   chan struct{}
}

func newFate(last int, undone bool) *fate {
	return &fate{last: last, undone: undone, dead: make(chan struct{})}
}

func (f *fate) isDead() bool {
	select {
	case <-f.dead:
		return true
	default:
		return false
	}
}

// act does something unless it is over. The lock is not held meanwhile: an act that takes
// its time, as an append can, holds up nothing else.
func (f *fate) act(what string, do func()) error {
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

// die ends it now.
func (f *fate) die() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isDead() {
		close(f.dead)
	}
}

func (f *fate) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.acts)
}

// mortal is a journal that dies with its engine.
type mortal struct {
	journal.Journal
	fate *fate
}

func (m mortal) Append(ctx context.Context, batch []journal.Change, expect ...journal.Expect) (last uint64, err error) {
	dead := m.fate.act(fmt.Sprintf("append %d", len(batch)), func() { last, err = m.Journal.Append(ctx, batch, expect...) })
	if dead != nil {
		return 0, dead
	}
	return last, err
}

// fakeDisk holds everybody's agent_state.json. It outlives engines; an engine watches it
// through a fakeFiles.
type fakeDisk struct {
	mu    sync.Mutex
	files map[string][]byte
	watch *fakeFiles // of the engine that lives, if one does
}

func newFakeDisk() *fakeDisk { return &fakeDisk{files: map[string][]byte{}} }

func (d *fakeDisk) text(agent string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files[agent]
}

func (d *fakeDisk) state(agent string) interop.AgentState {
	s, _ := interop.ParseAgentState(d.text(agent))
	return s
}

// put is somebody else's write; nil deletes.
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

// wish is a foreign Mission Control at work.
func (d *fakeDisk) wish(agent, desired, note string, at time.Time) {
	d.mu.Lock()
	s, _ := interop.ParseAgentState(d.files[agent])
	d.mu.Unlock()
	s.DesiredState, s.SetBy, s.Note, s.Timestamp = desired, interop.SetByHuman, note, interop.FormatTime(at)
	if s.CurrentState == "" {
		s.CurrentState = interop.Pause
	}
	d.put(agent, s.Render())
}

// fakeFiles is interop.StateFiles as its documentation says it, without a file system.
type fakeFiles struct {
	disk *fakeDisk
	fate *fate
	seen chan interop.Seen
	wake chan struct{}
	done chan struct{}
	ran  sync.WaitGroup

	// Under the disk's lock:
	seq   uint64
	now   map[string]interop.Seen
	taken map[string]uint64
	queue []interop.Seen

	adding, reading, writing hook
	handing                  hook // asked before a look is handed out
	writes                   int
}

func newFakeFiles(disk *fakeDisk, f *fate) *fakeFiles {
	w := &fakeFiles{
		disk: disk, fate: f, seen: make(chan interop.Seen), wake: make(chan struct{}, 1), done: make(chan struct{}),
		now: map[string]interop.Seen{}, taken: map[string]uint64{},
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
		var next interop.Seen
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
		select {
		case w.seen <- next:
		case <-w.done:
			return
		}
	}
}

// noticed looks at a file; the caller holds the disk's lock.
func (w *fakeFiles) noticed(agent string) {
	was, watched := w.now[agent]
	if !watched {
		return
	}
	text, there := w.disk.files[agent]
	if there == (was.Kind != interop.KindDeleted) && slices.Equal(text, was.Bytes) {
		return
	}
	w.seq++
	s := interop.Seen{Name: agent, Seq: w.seq, Kind: interop.KindDeleted, At: time.Now().UTC()}
	if there {
		s.Bytes, s.Sum = text, interop.SumOf(text)
		state, err := interop.ParseAgentState(text)
		s.Kind, s.State = interop.KindWritten, state
		if err != nil {
			s.Kind, s.Fault, s.KeptAs = interop.KindMalformed, err.Error(), "kept"
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
		return errors.New("it is watched already")
	}
	w.disk.watch = w
	w.now[agent] = interop.Seen{Name: agent, Kind: interop.KindDeleted}
	w.noticed(agent)
	return nil
}

func (w *fakeFiles) Seen() <-chan interop.Seen { return w.seen }

func (w *fakeFiles) Read(agent string) (interop.Seen, error) {
	if err := w.reading.ask(agent); err != nil {
		return interop.Seen{}, err
	}
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	s, ok := w.now[agent]
	if !ok {
		return s, errors.New("not watched")
	}
	return s, nil
}

func (w *fakeFiles) Took(seen interop.Seen) {
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	w.taken[seen.Name] = max(w.taken[seen.Name], seen.Seq)
}

func (w *fakeFiles) Write(_ context.Context, agent string, content []byte, newest uint64, isOurs func(interop.Sum) bool) error {
	if err := w.writing.ask(agent); err != nil {
		return err
	}
	var changed error
	err := w.fate.act("write "+agent+" "+oneLine(content), func() {
		w.disk.mu.Lock()
		defer w.disk.mu.Unlock()
		s := w.now[agent]
		ours := s.Own || s.Kind == interop.KindWritten && isOurs(s.Sum)
		if s.Seq > newest && !s.Own || !ours && s.Seq > w.taken[agent] {
			changed = &interop.Changed{Seen: s}
			return
		}
		w.seq++
		w.writes++
		state, _ := interop.ParseAgentState(content)
		w.now[agent] = interop.Seen{
			Name: agent, Seq: w.seq, Kind: interop.KindWritten, Bytes: content, State: state, Sum: interop.SumOf(content), Own: true,
		}
		w.disk.files[agent] = content
	})
	if err != nil {
		return err
	}
	return changed
}

func oneLine(content []byte) string {
	s, _ := interop.ParseAgentState(content)
	return strings.Join([]string{s.DesiredState, s.CurrentState}, "/")
}
