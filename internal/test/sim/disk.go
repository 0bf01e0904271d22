package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// What the real files do, in the words of agentfile: the waits are its own.
const (
	tornFor    = 250 * time.Millisecond // nonsense that stays so long is malformed
	swappedFor = time.Second            // how long what was swapped out is kept, at least
)

// sheet is one version of one file. A foreign program may still be writing to it.
type sheet struct {
	n       int // which write it was
	bytes   []byte
	foreign bool
	note    string // of a desired state: unique
	since   time.Time
	judged  bool // nonsense, and it stayed: kept aside
}

func (s *sheet) state() (agentfile.State, bool) {
	if s == nil {
		return agentfile.State{}, false
	}
	state, err := agentfile.Parse(s.bytes)
	return state, err == nil
}

// stateFile is one agent_state.json with what was swapped out of its place lately.
type stateFile struct {
	now     *sheet // nil: there is none
	swapped []*swapped
	extra   string // the unknown fields of a foreign writer; empty: undetermined
}

type swapped struct {
	*sheet
	since, told time.Time // told: its last report was taken
	last        uint64    // the number of that report
	news        bool      // it holds what was not known when it was replaced
	by          *life     // who sees to it; one that is dead lets nothing go
}

// put is a write that is there at once; the caller holds the lock.
func (w *world) put(agent string, bytes []byte, foreign bool, note string) *sheet {
	w.writes++
	s := &sheet{n: w.writes, bytes: bytes, foreign: foreign, note: note, since: time.Now()}
	w.files[agent].now, w.files[agent].extra = s, extraOf(s)
	return s
}

// extraOf returns the unknown fields of a content.
func extraOf(s *sheet) (raw string) {
	state, _ := s.state()
	for _, field := range state.Extra {
		raw += string(field.Raw)
	}
	return raw
}

// written lets everybody who watches look.
func (w *world) written(agent string) {
	w.doubt(agent)
	w.lookAll(agent)
}

// doubt has everybody look again when nonsense has stayed long enough.
func (w *world) doubt(agent string) {
	s := w.files[agent].now
	if _, ok := s.state(); s == nil || ok || s.judged {
		return
	}
	since := time.Now()
	s.since = since
	time.AfterFunc(tornFor, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if _, ok := s.state(); !ok && s.since.Equal(since) {
			s.judged = true
			w.lookAll(agent)
		}
	})
}

func (w *world) lookAll(agent string) {
	for _, l := range w.lives {
		if !l.dead {
			l.eyes.look(agent)
		}
	}
	close(w.moved)
	w.moved = make(chan struct{})
}

// eyes are one engine's view of the files: agentfile.Files as its documentation says it.
// The world's lock guards them.
type eyes struct {
	w     *world
	l     *life
	seen  chan agentfile.Seen
	wake  chan struct{}
	queue []agentfile.Seen
	last  map[string]agentfile.Seen // handed out last; to be handed out once more
	now   map[string]agentfile.Seen
	sheet map[string]*sheet // that now is of
	taken map[string]uint64
	seq   uint64
	notes map[uint64]*swapped
}

func newEyes(w *world, l *life) *eyes {
	return &eyes{
		w: w, l: l, seen: make(chan agentfile.Seen), wake: make(chan struct{}, 1), last: map[string]agentfile.Seen{},
		now: map[string]agentfile.Seen{}, sheet: map[string]*sheet{}, taken: map[string]uint64{}, notes: map[uint64]*swapped{},
	}
}

func (e *eyes) Seen() <-chan agentfile.Seen { return e.seen }

// handOut hands every look over, each when the stagehand lets it.
func (e *eyes) handOut() {
	for {
		e.w.mu.Lock()
		var next agentfile.Seen
		some := len(e.queue) > 0
		if some {
			next, e.queue = e.queue[0], e.queue[1:]
		}
		e.w.mu.Unlock()
		if !some {
			select {
			case <-e.wake:
				continue
			case <-e.l.gone:
				return
			}
		}
		if f := e.w.wait(e.l, "look "+next.Name); f == dies {
			e.w.die(e.l)
			return
		}
		e.w.mu.Lock()
		e.w.came("engine %d is told", e.l.n) // now, so that its consequences are recorded after it
		e.w.mu.Unlock()
		select {
		case e.seen <- next:
			e.w.mu.Lock()
			e.last[next.Name] = next
			e.w.mu.Unlock()
		case <-e.l.gone:
			return
		}
	}
}

// Took notes that something is kept.
func (e *eyes) Took(seen agentfile.Seen) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if e.l.dead {
		return
	}
	if !seen.FromSwap {
		e.taken[seen.Name] = max(e.taken[seen.Name], seen.Seq)
		return
	}
	if s := e.notes[seen.Seq]; s != nil && s.last == seen.Seq && s.told.IsZero() {
		s.told = time.Now()
	}
}

func (e *eyes) report(s agentfile.Seen) agentfile.Seen {
	e.seq++
	s.Seq, s.At = e.seq, time.Now().UTC()
	e.queue = append(e.queue, s)
	select {
	case e.wake <- struct{}{}:
	default:
	}
	return s
}

// seenOf is what a sheet looks like; ok is false while it may still become something else.
func seenOf(agent string, s *sheet) (seen agentfile.Seen, ok bool) {
	if s == nil {
		return agentfile.Seen{Name: agent, Kind: agentfile.KindDeleted}, true
	}
	seen = agentfile.Seen{Name: agent, Kind: agentfile.KindWritten, Bytes: s.bytes, Sum: file.SumOf(s.bytes), Ident: fmt.Sprintf("write-%d", s.n)}
	state, err := agentfile.Parse(s.bytes)
	if err != nil {
		seen.Kind, seen.Fault, seen.KeptAs = agentfile.KindMalformed, err.Error(), fmt.Sprintf("kept-%d", s.n)
		return seen, s.judged
	}
	seen.State = state
	return seen, true
}

// look reports what is new in a file's place; the caller holds the lock.
func (e *eyes) look(agent string) {
	was, watched := e.now[agent]
	s := e.w.files[agent].now
	if !watched || (s == e.sheet[agent] && (s == nil || slices.Equal(s.bytes, was.Bytes))) {
		return
	}
	seen, ok := seenOf(agent, s)
	if !ok {
		return
	}
	e.sheet[agent] = s
	e.now[agent] = e.report(seen)
	e.w.came("engine %d finds the file of %s %s: %s %s", e.l.n, agent, seen.Kind, seen.State.DesiredState, seen.State.Note)
}

// Add also finds what an engine that died had swapped out.
func (e *eyes) Add(agent, _ string) error {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if e.l.dead {
		return errDead
	}
	f := e.w.files[agent]
	for _, s := range f.swapped {
		s.by, s.since = e.l, time.Now()
		if f.now == nil || !slices.Equal(s.bytes, f.now.bytes) {
			if seen, ok := seenOf(agent, s.sheet); ok {
				e.reportSwapped(seen, s)
			}
		}
	}
	e.now[agent] = agentfile.Seen{Name: agent, Kind: agentfile.KindDeleted}
	e.w.doubt(agent)
	e.look(agent)
	return nil
}

func (e *eyes) reportSwapped(seen agentfile.Seen, s *swapped) {
	seen.FromSwap = true
	s.told, s.news = time.Time{}, true
	s.last = e.report(seen).Seq
	e.notes[s.last] = s
}

// settled waits until the current content is certain; the caller holds the lock.
func (e *eyes) settled(ctx context.Context, agent string) error {
	for {
		switch {
		case e.l.dead:
			return errDead
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if _, ok := seenOf(agent, e.w.files[agent].now); ok {
			e.look(agent)
			return nil
		}
		moved := e.w.moved
		e.w.mu.Unlock()
		select {
		case <-moved:
		case <-e.l.gone:
		case <-ctx.Done():
		}
		e.w.mu.Lock()
	}
}

func (e *eyes) Read(agent string) (seen agentfile.Seen, err error) {
	err = e.w.act(e.l, "read "+agent, func() error {
		e.w.mu.Lock()
		defer e.w.mu.Unlock()
		if _, ok := e.now[agent]; !ok {
			return errors.New("it is not watched")
		}
		if err := e.settled(context.Background(), agent); err != nil {
			return err
		}
		seen = e.now[agent]
		e.l.read[agent] = e.sheet[agent]
		return nil
	})
	return seen, err
}

func (e *eyes) Write(ctx context.Context, agent string, content []byte, newest uint64, isOurs func(file.Sum) bool) error {
	e.w.mu.Lock()
	e.w.checkWrite(agent, content)
	e.w.mu.Unlock()
	f := e.w.wait(e.l, "write "+agent)
	write := func() error {
		e.w.mu.Lock()
		defer e.w.mu.Unlock()
		return e.write(ctx, agent, content, newest, isOurs)
	}
	switch f {
	case goOn, raced, cannotRun:
		return write()
	case fails:
		return e.w.inject(e.l, "write "+agent)
	case late:
		_ = write()
		return e.w.inject(e.l, "write "+agent)
	case diesDone:
		_ = write()
	}
	e.w.die(e.l)
	return errDead
}

// write exchanges the file for ours, and looks at what comes out.
func (e *eyes) write(ctx context.Context, agent string, content []byte, newest uint64, isOurs func(file.Sum) bool) error {
	if err := e.settled(ctx, agent); err != nil {
		return err
	}
	seen, f := e.now[agent], e.w.files[agent]
	ours := seen.Own || seen.Kind == agentfile.KindWritten && isOurs(seen.Sum)
	stale := !seen.Own && seen.Seq > newest
	if stale || !ours && seen.Seq > e.taken[agent] {
		return &agentfile.Changed{Seen: seen}
	}
	if pen := e.w.pens[agent]; pen != nil { // a foreign write falls between the engine's read and its exchange
		delete(e.w.pens, agent)
		pen()
		f.extra = "" // as for a completed write
	}
	old := f.now
	e.w.checkForeignWrite(agent, e.sheet[agent], old, content)
	e.w.writes++
	f.now = &sheet{n: e.w.writes, bytes: content, since: time.Now()}
	state, _ := agentfile.Parse(content)
	e.seq++
	e.now[agent] = agentfile.Seen{Name: agent, Seq: e.seq, Kind: agentfile.KindWritten, Bytes: content, State: state, Sum: file.SumOf(content), Own: true}
	known := e.sheet[agent]
	e.sheet[agent] = f.now
	e.w.came("the file of %s says %s/%s %s", agent, state.DesiredState, state.CurrentState, state.Note)
	if old != nil {
		e.w.replaced(agent, old)
		s := &swapped{sheet: old, since: time.Now(), by: e.l}
		f.swapped = append(f.swapped, s)
		if was, ok := seenOf(agent, old); ok && old != known {
			e.reportSwapped(was, s)
		}
	}
	e.w.lookAll(agent)
	return nil
}

// replaced: Fairlead removed another program's content, so it must be in the journal in the end.
func (w *world) replaced(agent string, old *sheet) {
	if _, ok := old.state(); ok && old.foreign && old.note != "" {
		w.owed[old.note] = owed{agent: agent, ident: fmt.Sprintf("write-%d", old.n)}
	}
}

// owed is another program's write that must be in the journal.
type owed struct {
	agent, ident string
}

// Completes a foreign write, whatever happened to its file version meanwhile.
func (w *world) mend(agent string, s *sheet, whole []byte, note string) {
	w.tidy() // time passes: that version is not read any more
	f := w.files[agent]
	if f.now == s {
		w.put(agent, whole, true, note)
		w.written(agent)
		return
	}
	for _, old := range f.swapped {
		if old.sheet != s {
			continue
		}
		s.bytes, s.note, s.foreign = whole, note, true
		w.writes++
		s.n = w.writes
		f.extra = "" // it is kept only if its desired state is the newer one
		w.owed[note] = owed{agent: agent, ident: fmt.Sprintf("write-%d", s.n)}
		for _, l := range w.lives {
			if _, watched := l.eyes.now[agent]; watched && !l.dead {
				seen, _ := seenOf(agent, s)
				l.eyes.reportSwapped(seen, old)
			}
		}
	}
}

// letGo is the end of an engine that was not killed: what it was told goes, the rest is
// left for the next one.
func (e *eyes) letGo() {
	for _, f := range e.w.files {
		f.swapped = slices.DeleteFunc(f.swapped, func(s *swapped) bool { return s.by == e.l && (!s.news || !s.told.IsZero()) })
	}
}

// leftOver says whether a day ends with something swapped out of which no journal tells.
func (w *world) leftOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.files {
		if slices.ContainsFunc(f.swapped, func(s *swapped) bool { return s.by.dead && s.news && s.told.IsZero() }) {
			return true
		}
	}
	return false
}

// tidy lets go of what was swapped out long enough ago.
func (w *world) tidy() {
	for _, f := range w.files {
		f.swapped = slices.DeleteFunc(f.swapped, func(s *swapped) bool {
			if s.by.dead {
				return false
			}
			if s.news {
				return !s.told.IsZero() && time.Since(s.told) >= swappedFor
			}
			return time.Since(s.since) >= swappedFor
		})
	}
}
