package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/files/exchange"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// The timings of package agentfile.
const (
	tornFor    = 250 * time.Millisecond // invalid content counts as malformed after this time
	swappedFor = time.Second            // a replaced file is kept at least this long
)

// fileVersion is one version of one state file. Another program may still be writing to it.
type fileVersion struct {
	n         int // the number of the write that created it
	bytes     []byte
	foreign   bool
	note      string // unique note of the desired state
	since     time.Time
	malformed bool // it stayed invalid for too long
}

func (s *fileVersion) state() (agentstate.State, bool) {
	if s == nil {
		return agentstate.State{}, false
	}
	state, err := agentstate.Parse(s.bytes)
	return state, err == nil
}

// stateFile is one agent_state.json with the versions that were recently replaced.
type stateFile struct {
	now              *fileVersion // nil: the file does not exist
	replacedVersions []*replacedVersion
	extra            string // the unknown fields that another program wrote; empty: undetermined
}

type replacedVersion struct {
	*fileVersion
	since, reported time.Time  // reported: its last observation was recorded
	last            uint64     // the number of its last observation
	unreported      bool       // it has content that was unknown when it was replaced
	owner           *engineRun // the engine that watches it; a crashed engine drops nothing
}

// put replaces the content of a file at once; the caller holds the lock.
func (w fileWorld) put(agent string, bytes []byte, foreign bool, note string) *fileVersion {
	w.writes++
	s := &fileVersion{n: w.writes, bytes: bytes, foreign: foreign, note: note, since: time.Now()}
	w.files[agent].now, w.files[agent].extra = s, extraOf(s)
	return s
}

// extraOf returns the unknown fields of a version.
func extraOf(s *fileVersion) (raw string) {
	state, _ := s.state()
	for _, field := range state.Extra {
		raw += string(field.Raw)
	}
	return raw
}

func (w fileWorld) written(agent string) {
	w.recheckLater(agent)
	w.checkAll(agent)
}

// recheckLater notifies all watchers when invalid content has stayed for tornFor.
func (w fileWorld) recheckLater(agent string) {
	s := w.files[agent].now
	if _, ok := s.state(); s == nil || ok || s.malformed {
		return
	}
	since := time.Now()
	s.since = since
	time.AfterFunc(tornFor, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if _, ok := s.state(); !ok && s.since.Equal(since) {
			s.malformed = true
			w.checkAll(agent)
		}
	})
}

func (w fileWorld) checkAll(agent string) {
	for _, l := range w.engines {
		if !l.dead {
			l.files.checkNow(agent)
		}
	}
	close(w.fileChanged)
	w.fileChanged = make(chan struct{})
}

// stateFiles is one engine's view of the state files. It behaves as agentstate.Files documents it.
// The world's lock guards it.
type stateFiles struct {
	deliveries[agentstate.Seen]
	last        map[string]agentstate.Seen // the last delivered observation, for repeatNotice
	now         map[string]agentstate.Seen
	fileVersion map[string]*fileVersion // the version that now describes
	taken       map[string]uint64
	seq         uint64
	notes       map[uint64]*replacedVersion
}

func newStateFiles(w *world, l *engineRun) *stateFiles {
	return &stateFiles{
		deliveries: deliveries[agentstate.Seen]{w: w, l: l, wake: make(chan struct{}, 1)}, last: map[string]agentstate.Seen{},
		now: map[string]agentstate.Seen{}, fileVersion: map[string]*fileVersion{}, taken: map[string]uint64{},
		notes: map[uint64]*replacedVersion{},
	}
}

// Deliver is called before Add.
func (e *stateFiles) Deliver(to func(agentstate.Seen)) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.to = to
}

// deliveries are the observations that an engine has not received yet. The world's lock guards them.
type deliveries[T any] struct {
	w     *world
	l     *engineRun
	to    func(T)
	queue []T
	wake  chan struct{}
}

func (d *deliveries[T]) add(seen T) {
	d.queue = append(d.queue, seen)
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// deliver delivers the observations one by one, each when the director allows it.
func (d *deliveries[T]) deliver(name func(T) string, after func(T)) {
	for {
		d.w.mu.Lock()
		var next T
		some := len(d.queue) > 0
		if some {
			next, d.queue = d.queue[0], d.queue[1:]
		}
		to := d.to
		d.w.mu.Unlock()
		if !some {
			select {
			case <-d.wake:
				continue
			case <-d.l.gone:
				return
			}
		}
		if f := d.w.wait(d.l, "look "+name(next)); f == crashBefore {
			d.w.crash(d.l)
			return
		}
		d.w.mu.Lock()
		d.w.notef("engine %d receives an observation", d.l.n) // before the delivery, so that the trace shows its effects below this line
		d.w.mu.Unlock()
		to(next)
		d.w.mu.Lock()
		after(next)
		d.w.mu.Unlock()
	}
}

func (e *stateFiles) deliver() {
	e.deliveries.deliver(func(s agentstate.Seen) string { return s.Name }, func(s agentstate.Seen) { e.last[s.Name] = s })
}

// Took records that an observation is in the journal.
func (e *stateFiles) Confirm(seen agentstate.Seen) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if e.l.dead {
		return
	}
	if !seen.FromSwap {
		e.taken[seen.Name] = max(e.taken[seen.Name], seen.Seq)
		return
	}
	if s := e.notes[seen.Seq]; s != nil && s.last == seen.Seq && s.reported.IsZero() {
		s.reported = time.Now()
	}
}

func (e *stateFiles) report(s agentstate.Seen) agentstate.Seen {
	e.seq++
	s.Seq, s.At = e.seq, time.Now().UTC()
	e.add(s)
	return s
}

// seenOf describes a version. ok is false while an incomplete write may still be completed.
func seenOf(agent string, s *fileVersion) (seen agentstate.Seen, ok bool) {
	if s == nil {
		return agentstate.Seen{Name: agent, Kind: exchange.KindDeleted}, true
	}
	seen = agentstate.Seen{
		Name: agent, Kind: exchange.KindWritten, Bytes: s.bytes, Sum: file.SumOf(s.bytes),
		Ident: fmt.Sprintf("write-%d", s.n),
	}
	state, err := agentstate.Parse(s.bytes)
	if err != nil {
		seen.Kind, seen.Fault, seen.KeptAs = exchange.KindMalformed, err.Error(), fmt.Sprintf("kept-%d", s.n)
		return seen, s.malformed
	}
	seen.State = state
	return seen, true
}

// checkNow reports the current version if it is new; the caller holds the lock.
func (e *stateFiles) checkNow(agent string) {
	was, watched := e.now[agent]
	s := e.w.files[agent].now
	if !watched || (s == e.fileVersion[agent] && (s == nil || slices.Equal(s.bytes, was.Bytes))) {
		return
	}
	seen, ok := seenOf(agent, s)
	if !ok {
		return
	}
	e.fileVersion[agent] = s
	e.now[agent] = e.report(seen)
	e.w.notef("engine %d finds the file of %s %s: %s %s", e.l.n, agent, seen.Kind, seen.State.DesiredState, seen.State.Note)
}

// Add watches a file. It also finds the versions that an engine had replaced before it crashed.
func (e *stateFiles) Add(agent, _ string) error {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if e.l.dead {
		return errDead
	}
	f := e.w.files[agent]
	for _, s := range f.replacedVersions {
		s.owner, s.since = e.l, time.Now()
		if f.now == nil || !slices.Equal(s.bytes, f.now.bytes) {
			if seen, ok := seenOf(agent, s.fileVersion); ok {
				e.reportSwapped(seen, s)
			}
		}
	}
	e.now[agent] = agentstate.Seen{Name: agent, Kind: exchange.KindDeleted}
	fileWorld{e.w}.recheckLater(agent)
	e.checkNow(agent)
	return nil
}

func (e *stateFiles) reportSwapped(seen agentstate.Seen, s *replacedVersion) {
	seen.FromSwap = true
	s.reported, s.unreported = time.Time{}, true
	s.last = e.report(seen).Seq
	e.notes[s.last] = s
}

// settled waits until the current version is certain; the caller holds the lock.
func (e *stateFiles) settled(ctx context.Context, agent string) error {
	for {
		switch {
		case e.l.dead:
			return errDead
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if _, ok := seenOf(agent, e.w.files[agent].now); ok {
			e.checkNow(agent)
			return nil
		}
		moved := e.w.fileChanged
		e.w.mu.Unlock()
		select {
		case <-moved:
		case <-e.l.gone:
		case <-ctx.Done():
		}
		e.w.mu.Lock()
	}
}

func (e *stateFiles) Read(agent string) (seen agentstate.Seen, err error) {
	err = e.w.act(e.l, "read "+agent, func() error {
		e.w.mu.Lock()
		defer e.w.mu.Unlock()
		if _, ok := e.now[agent]; !ok {
			return errors.New("the file is not watched")
		}
		if err := e.settled(context.Background(), agent); err != nil {
			return err
		}
		seen = e.now[agent]
		e.l.read[agent] = e.fileVersion[agent]
		return nil
	})
	return seen, err
}

func (e *stateFiles) Write(ctx context.Context, agent string, content []byte, newest uint64, isOurs func(file.Sum) bool) error {
	e.w.mu.Lock()
	checks{e.w}.checkWrite(agent, content)
	e.w.mu.Unlock()
	f := e.w.wait(e.l, "write "+agent)
	write := func() error {
		e.w.mu.Lock()
		defer e.w.mu.Unlock()
		return e.write(ctx, agent, content, newest, isOurs)
	}
	switch f {
	case proceeds, raceWrite, notExecutable:
		return write()
	case fails:
		return e.w.inject(e.l, "write "+agent)
	case replyLost:
		_ = write()
		return e.w.inject(e.l, "write "+agent)
	case crashAfter:
		_ = write()
	}
	e.w.crash(e.l)
	return errDead
}

// write exchanges the file and examines the replaced version.
func (e *stateFiles) write(ctx context.Context, agent string, content []byte, newest uint64, isOurs func(file.Sum) bool) error {
	if err := e.settled(ctx, agent); err != nil {
		return err
	}
	seen, f := e.now[agent], e.w.files[agent]
	ours := seen.Own || seen.Kind == exchange.KindWritten && isOurs(seen.Sum)
	stale := !seen.Own && seen.Seq > newest
	if stale || !ours && seen.Seq > e.taken[agent] {
		return &agentstate.Changed{Seen: seen}
	}
	if write := e.w.raceWrites[agent]; write != nil { // another program writes between the engine's read and its exchange
		delete(e.w.raceWrites, agent)
		write()
		f.extra = "" // undetermined, as in completeWrite
	}
	old := f.now
	fileWorld{e.w}.checkForeignWrite(agent, e.fileVersion[agent], old, content)
	e.w.writes++
	f.now = &fileVersion{n: e.w.writes, bytes: content, since: time.Now()}
	state, _ := agentstate.Parse(content)
	e.seq++
	e.now[agent] = agentstate.Seen{
		Name: agent, Seq: e.seq, Kind: exchange.KindWritten, Bytes: content, State: state,
		Sum: file.SumOf(content), Own: true,
	}
	known := e.fileVersion[agent]
	e.fileVersion[agent] = f.now
	e.w.notef("the file of %s says %s/%s %s", agent, state.DesiredState, state.CurrentState, state.Note)
	if old != nil {
		fileWorld{e.w}.mustStore(agent, old)
		s := &replacedVersion{fileVersion: old, since: time.Now(), owner: e.l}
		f.replacedVersions = append(f.replacedVersions, s)
		if was, ok := seenOf(agent, old); ok && old != known {
			e.reportSwapped(was, s)
		}
	}
	fileWorld{e.w}.checkAll(agent)
	return nil
}

// mustStore records that Fairlead replaced another program's content, which must be in the journal
// at the end.
func (w fileWorld) mustStore(agent string, old *fileVersion) {
	if _, ok := old.state(); ok && old.foreign && old.note != "" {
		w.mustBeStored[old.note] = storedLater{agent: agent, ident: fmt.Sprintf("write-%d", old.n)}
	}
}

// storedLater is another program's write that must be in the journal at the end.
type storedLater struct {
	agent, ident string
}

// completeWrite completes another program's write, whatever happened to its file version meanwhile.
func (w fileWorld) completeWrite(agent string, s *fileVersion, whole []byte, note string) {
	w.dropOld() // versions may be due
	f := w.files[agent]
	if f.now == s {
		w.put(agent, whole, true, note)
		w.written(agent)
		return
	}
	for _, old := range f.replacedVersions {
		if old.fileVersion != s {
			continue
		}
		s.bytes, s.note, s.foreign = whole, note, true
		w.writes++
		s.n = w.writes
		f.extra = "" // undetermined: they survive only if this desired state is the newer one
		w.mustBeStored[note] = storedLater{agent: agent, ident: fmt.Sprintf("write-%d", s.n)}
		for _, l := range w.engines {
			if _, watched := l.files.now[agent]; watched && !l.dead {
				seen, _ := seenOf(agent, s)
				l.files.reportSwapped(seen, old)
			}
		}
	}
}

// dropReported drops the versions whose observations are recorded, when an engine stops normally.
// The next engine handles the others.
func (e *stateFiles) dropReported() {
	for _, f := range e.w.files {
		f.replacedVersions = slices.DeleteFunc(f.replacedVersions,
			func(s *replacedVersion) bool { return s.owner == e.l && (!s.unreported || !s.reported.IsZero()) })
	}
}

// hasUnreported reports whether a replaced version exists whose content is in no journal.
func (w fileWorld) hasUnreported() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.files {
		if slices.ContainsFunc(f.replacedVersions,
			func(s *replacedVersion) bool { return s.owner.dead && s.unreported && s.reported.IsZero() }) {
			return true
		}
	}
	return false
}

// dropOld drops the versions that were replaced long enough ago.
func (w fileWorld) dropOld() {
	for _, f := range w.files {
		f.replacedVersions = slices.DeleteFunc(f.replacedVersions, func(s *replacedVersion) bool {
			if s.owner.dead {
				return false
			}
			if s.unreported {
				return !s.reported.IsZero() && time.Since(s.reported) >= swappedFor
			}
			return time.Since(s.since) >= swappedFor
		})
	}
}

// outsider is a foreign agent, which runs its own loop. Fairlead never starts it and communicates
// with it only through its state file.
const outsider = "outsider"

const (
	outsiderLooks = 10 * time.Second // the polling interval of seed 000
	outsiderWorks = 25 * time.Second // the length of a session
)

// foreign is the state of the outsider's loop. Crashes do not affect it.
type foreign struct {
	next  time.Time // time of its next look at the file
	until time.Time // end of its session; zero: it is idle
	doing string    // the desired state that began the session
}

// playForeign does what the outsider's loop does at this moment; the caller holds the lock.
func (w fileWorld) playForeign() {
	me, now := &w.foreign, time.Now()
	if now.Before(me.next) || now.Before(me.until) {
		return
	}
	me.next = now.Add(outsiderLooks)
	state, whole := w.files[outsider].now.state()
	if !whole {
		return // it waits for a readable file
	}
	was := state
	if !me.until.IsZero() {
		me.until = time.Time{}
		if me.doing != control.WordContinuous && state.DesiredState == me.doing { // rows C8 and C9, as seed 000 describes them
			state.DesiredState, state.SetBy, state.Note = control.WordPause, agentstate.SetByAgent, me.doing+" is done"
		}
	}
	switch state.DesiredState {
	case control.WordContinuous, control.WordRunOnce, control.WordRunCleanup:
		me.until, me.doing = now.Add(outsiderWorks), state.DesiredState
		state.CurrentState = state.DesiredState
	default:
		state.CurrentState = control.WordPause
	}
	if state.DesiredState == was.DesiredState && state.CurrentState == was.CurrentState {
		return
	}
	state.Timestamp = file.FormatTime(now)
	w.put(outsider, state.Render(), true, "")
	w.notef("the outsider writes %s/%s", state.DesiredState, state.CurrentState)
	w.written(outsider)
}

// checkForeignFile checks that the outsider's file has the desired state and that its report is in
// the journal.
func (w fileWorld) checkForeignFile(a *team.Agent, is control.File) {
	f := w.files[outsider]
	state, whole := f.now.state()
	if !whole || a.Control.Desired.N == 0 {
		return // no desired state was ever set
	}
	checks(w).check(foreignLoop, state.DesiredState == is.Desired, "the desired state of the outsider is %s, but its file says %s",
		is.Desired, state.DesiredState)
	known := is.Current != "unknown"
	checks(w).check(foreignLoop, !known || state.CurrentState == is.Current, "the outsider reports %s, but the journal says %s",
		state.CurrentState, is.Current)
	if f.extra != "" {
		kept := extraOf(f.now)
		checks(w).check(extraSurvives, kept == f.extra, "the file of %s has the unknown fields %s, want %s", outsider, kept, f.extra)
	}
	if f.now.foreign && f.now.note != "" {
		w.mustBeStored[f.now.note] = storedLater{agent: outsider, ident: fmt.Sprintf("write-%d", f.now.n)}
	}
}

// checkForeignWrite checks that Fairlead writes the desired state, and no current state, into the
// file of a foreign loop. If the loop writes between the engine's read and its exchange, its
// content is found in the replaced file; checkForeignFile checks at the end that it was restored.
func (w fileWorld) checkForeignWrite(agent string, known, old *fileVersion, content []byte) {
	if agent != outsider || known != old || old == nil || !old.foreign {
		return
	}
	was, whole := old.state()
	now, err := agentstate.Parse(content)
	if !whole || err != nil || was.CurrentState == "" || was.CurrentState == now.CurrentState {
		return
	}
	checks(w).broken(foreignLoop, "the outsider reported %q, but Fairlead wrote %q", was.CurrentState, now.CurrentState)
}
