package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// sessionInput is a session's input as its shim keeps it. Bytes below the reached offset are
// dropped as repetitions. The label of the last labelled write is kept. The world's lock guards it.
type sessionInput struct {
	taken  int64  // offset of the next byte
	all    []byte // all input so far
	label  string
	lines  []line        // lines that the agent has not read
	more   chan struct{} // closed and replaced with every line and at the end
	closed bool
}

// line is one order in a session's input.
type line struct {
	order speech.Order
	key   string // key of its action
	end   int64  // offset of its end in the input
}

func newSessionInput() *sessionInput { return &sessionInput{more: make(chan struct{})} }

// take accepts input at an offset, as a shim does.
func (t *sessionInput) take(offset int64, label string, b []byte) (fresh bool, err error) {
	switch {
	case offset > t.taken:
		return false, errors.New("the input has a gap")
	case offset+int64(len(b)) <= t.taken:
		t.setLabel(label)
		return false, nil // a repetition of known input
	case t.closed:
		return false, errors.New("the input was closed")
	}
	b = b[t.taken-offset:]
	t.all = append(t.all, b...)
	for one := range bytes.Lines(b) {
		t.taken += int64(len(one))
		var order speech.Order
		if json.Unmarshal(one, &order) == nil { // the reader ignores an incomplete line
			t.lines = append(t.lines, line{order: order, key: label, end: t.taken})
		}
	}
	t.setLabel(label)
	t.wake()
	return true, nil
}

// matches reports whether the known input at an offset equals b, as far as both are known.
func (t *sessionInput) matches(offset int64, b []byte) bool {
	there := t.all[min(offset, t.taken):]
	n := min(len(there), len(b))
	return bytes.Equal(there[:n], b[:n])
}

func (t *sessionInput) setLabel(label string) {
	if label != "" {
		t.label = label
	}
}

func (t *sessionInput) wake() {
	close(t.more)
	t.more = make(chan struct{})
}

func (t *sessionInput) close() {
	if !t.closed {
		t.closed = true
		t.wake()
	}
}

// putFirstInput writes the input of a launch, which contains the action that the session was opened
// for. The caller holds the lock.
func (w *world) putFirstInput(s *hostSession, first []byte) {
	a := w.truth.Agents[agentIn(s.id)]
	key := ""
	if a.Session != nil && a.Session.ID == s.id && a.Session.Delivery != nil {
		key = a.Session.Delivery.Key
	}
	if _, err := s.input.take(0, key, first); err != nil {
		panic("sim: the first input: " + err.Error())
	}
	s.input.label = "" // the input of a launch has no label
	channelWorld{w}.delivered(s, key, string(first))
}

// SendAs writes input with a label: the key of its action.
func (p *process) SendAs(_ context.Context, label string, b []byte) error {
	p.w.mu.Lock()
	channelWorld{p.w}.checkInputWrite(p.l, p.hostSession, label, b)
	p.w.mu.Unlock()
	return p.typed("type", label, b)
}

// Send writes input without a label: an order to stop, or an answer.
func (p *process) Send(_ context.Context, b []byte) error {
	p.w.mu.Lock()
	fileWorld{p.w}.checkAnswer(p.hostSession, b)
	p.w.mu.Unlock()
	return p.typed("input", "", b)
}

func (p *process) typed(what, label string, b []byte) error {
	return p.w.act(p.l, what+" "+p.id, func() error {
		if err := p.allowed(); err != nil {
			return err
		}
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		if p.isOver() {
			return errors.New("the agent has ended")
		}
		checks{p.w}.check(inputOnce, p.input.matches(p.at, b), "%s receives other input at the known offset %d: %s", p.id, p.at, label)
		fresh, err := p.input.take(p.at, label, b)
		if err != nil {
			return err
		}
		p.at += int64(len(b))
		p.w.notef("%s has %d bytes of input, the last label is %q", p.id, p.input.taken, p.input.label)
		if fresh && label != "" {
			channelWorld{p.w}.delivered(p.hostSession, label, string(b))
		}
		return nil
	})
}

// Input returns the offset of the session's input and its last label.
func (p *process) Input() (offset int64, label string) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.at, p.input.label
}

// errDead is the result of every operation of an engine that has crashed.
var errDead = errors.New("this engine is dead")

// outcome is what the director decides about an operation that waits at the gate.
type outcome string

const (
	proceeds      outcome = "go"     // it is done
	fails         outcome = "fail"   // it is not done, and the engine gets an error
	replyLost     outcome = "late"   // it is done, but the engine gets an error
	crashBefore   outcome = "die"    // the engine crashes before it is done
	crashAfter    outcome = "die-ok" // it is done, and the engine crashes before it gets the result
	raceWrite     outcome = "race"   // a write: another program writes between the engine's read and its exchange
	notExecutable outcome = "cannot" // a start: the command cannot be executed
)

// operation is one effect of an engine that waits at the gate.
type operation struct {
	key     string // its name, which is the same in every replay of a day
	decided chan outcome
}

// wait blocks until the director has decided about an operation.
func (w *world) wait(l *engineRun, what string) outcome {
	w.mu.Lock()
	if l.dead {
		w.mu.Unlock()
		return crashBefore
	}
	k := &operation{key: w.keyOf(l, what), decided: make(chan outcome, 1)}
	w.gate = append(w.gate, k)
	w.mu.Unlock()
	select {
	case f := <-k.decided:
		return f
	case <-l.gone:
		w.leave(k)
		return crashBefore
	}
}

// keyOf names an operation. A second one of the same name gets a number.
func (w *world) keyOf(l *engineRun, what string) string {
	base := fmt.Sprintf("%s of engine %d", what, l.n)
	key := base
	for n := 2; w.at(key) != nil; n++ {
		key = fmt.Sprintf("%s (%d)", base, n)
	}
	return key
}

func (w *world) at(key string) *operation {
	for _, k := range w.gate {
		if k.key == key {
			return k
		}
	}
	return nil
}

func (w *world) leave(k *operation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate = slices.DeleteFunc(w.gate, func(other *operation) bool { return other == k })
}

// waiting lists the waiting operations in an order that does not depend on their arrival.
func (w *world) waiting() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := make([]string, len(w.gate))
	for i, k := range w.gate {
		keys[i] = k.key
	}
	slices.Sort(keys)
	return keys
}

// decide decides about one waiting operation. An unknown key is no error, because in a shortened
// day many operations do not happen.
func (w *world) decide(key string, f outcome) bool {
	w.mu.Lock()
	k := w.at(key)
	w.mu.Unlock()
	if k == nil {
		return false
	}
	w.leave(k)
	k.decided <- f
	return true
}

// act performs an operation of an engine with the outcome that the director chooses.
func (w *world) act(l *engineRun, what string, do func() error) error {
	switch f := w.wait(l, what); f {
	case proceeds, raceWrite, notExecutable:
		return do()
	case fails:
		return w.inject(l, what)
	case replyLost:
		_ = do() // the engine does not get its result
		return w.inject(l, what)
	case crashAfter:
		_ = do()
		w.crash(l)
		return errDead
	default:
		w.crash(l)
		return errDead
	}
}

// inject returns a fault. checkSaid looks for its text, because every error must be reported.
func (w *world) inject(l *engineRun, what string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults++
	text := fmt.Sprintf("injected fault %d: %s", w.faults, what)
	l.faults = append(l.faults, text)
	return errors.New(text)
}

// kind returns the first word of a key: append, start, adopt, …
func kind(key string) string {
	word, _, _ := strings.Cut(key, " ")
	return word
}

// Play runs f in a goroutine of a running test, also in a program that is not a test. Only a test
// can use a synctest bubble, in which simulated time costs nothing. The command in cmd/sim uses
// Play. The test never ends; it is abandoned when the program's main function returns. Play sets
// GOMAXPROCS to 1, so that goroutines are scheduled in the same order in every replay.
func Play(f func(t *testing.T)) {
	startTest.Do(func() {
		runtime.GOMAXPROCS(1)
		testing.Init()
		if !flag.Parsed() {
			_ = flag.CommandLine.Parse(nil) // otherwise the test would parse the program's own arguments
		}
		go testing.Main(
			func(string, string) (bool, error) { return true, nil },
			[]testing.InternalTest{{Name: "sim", F: func(t *testing.T) {
				for job := range jobs {
					job(t)
				}
			}}}, nil, nil)
	})
	done := make(chan struct{})
	jobs <- func(t *testing.T) {
		defer close(done)
		f(t)
	}
	<-done
}

var (
	startTest sync.Once
	jobs      = make(chan func(t *testing.T)) // never closed: closing it would end the test and with it the program
)

// engineJournal is one engine's access to the journal. A batch that waits at the gate is not stored
// yet, and a power failure loses it.
type engineJournal struct {
	*memory.Journal
	w          *world
	l          *engineRun
	clockAhead time.Duration // how far the clock was ahead when it wrote the last change
}

func (j *engineJournal) Append(_ context.Context, batch []journal.Change, expect ...journal.Expect) (last uint64, err error) {
	err = j.w.act(j.l, "append", func() (err error) {
		last, err = j.store(batch, expect)
		return err
	})
	if err != nil {
		return 0, err
	}
	return last, nil
}

func (j *engineJournal) store(batch []journal.Change, expect []journal.Expect) (uint64, error) {
	last, err := j.Journal.Append(context.Background(), batch, expect...)
	if err != nil {
		return 0, err
	}
	j.w.mu.Lock()
	defer j.w.mu.Unlock()
	for i, rec := range batch {
		rec.Seq = last - uint64(len(batch)-1-i)
		j.w.stored(j.l, rec)
	}
	crewWorld{j.w}.checkCrew(j.w.batch)
	j.w.batch = nil
	return last, nil
}

// Read adds clockAhead to the time of the last change, as if the clock had been set back since.
func (j *engineJournal) Read(ctx context.Context, q journal.Query) iter.Seq2[journal.Change, error] {
	if j.clockAhead == 0 {
		return j.Journal.Read(ctx, q)
	}
	return func(yield func(journal.Change, error) bool) {
		head, _, _ := j.Head(ctx)
		for ch, err := range j.Journal.Read(ctx, q) {
			if ch.Seq == head {
				ch.Time = ch.Time.Add(j.clockAhead)
			}
			if !yield(ch, err) {
				return
			}
		}
	}
}

// SaveSnapshot compares the engine's team with the replayed one.
func (j *engineJournal) SaveSnapshot(ctx context.Context, s journal.Snapshot) error {
	if j.w.isDead(j.l) {
		return errDead
	}
	var kept struct{ Team json.RawMessage }
	if err := json.Unmarshal(s.Data, &kept); err == nil {
		j.w.mu.Lock()
		if s.Seq == j.w.head {
			ours, _ := json.Marshal(j.w.truth)
			checks{j.w}.check(replayIsLive, string(ours) == string(kept.Team),
				"the engine's team at change %d differs from a replay of its journal:\n  journal %s\n  engine  %s", s.Seq, ours, kept.Team)
		}
		j.w.mu.Unlock()
	}
	return j.Journal.SaveSnapshot(ctx, s)
}

// stored applies a stored change to the replayed team; the caller holds the lock.
func (w *world) stored(l *engineRun, rec journal.Change) {
	ch := change.Change{
		Machine: rec.Machine, Entity: rec.Entity, Row: rec.Row, From: rec.From, To: rec.To, Trigger: rec.Trigger,
		At: rec.Time, Actor: rec.Actor,
	}
	var err error
	if ch.Body, err = team.BodyOf(rec.Data); err != nil {
		checks{w}.broken(replayIsLive, "cannot decode change %d: %v", rec.Seq, err)
		return
	}
	w.head = rec.Seq
	w.notef("stored %d: %s %s -> %s  %s %s", rec.Seq, rec.Entity, rec.From, rec.To, rec.Row, rec.Trigger)
	if set := change.As[team.TeamSet](ch.Body); set != nil && rec.Trigger == "daemon_started" {
		l.epoch = set.Epoch
	}
	checks{w}.checkStored(l, ch)
	fileWorld{w}.checkQuestion(ch)
	fileWorld{w}.checkEnd(ch)
	channelWorld{w}.checkChannelChange(ch)
	crewWorld{w}.checkCrewOrderAllowed(ch)
	w.truth.Apply(ch)
	w.batch = append(w.batch, ch)
	w.remember(ch)
}

// remember keeps what later checks need.
func (w *world) remember(ch change.Change) {
	name := afterSlash(ch.Entity)
	switch body := ch.Body.(type) {
	case *crew.Body:
		documentWorld{w}.noteDocument(body)
	case *control.Body:
		w.noted[body.Value.Desired.Note] = true
		w.noted[body.Seen], w.noted[body.Swapped] = true, true
		if body.Overtaken != nil {
			w.noted[body.Overtaken.Note] = true
		}
	case *team.Session:
		if body.Phase != session.Open {
			return
		}
		if _, known := w.openedAt[body.ID]; !known {
			w.openedAt[body.ID] = time.Now()
		}
		w.desiredOf[body.ID] = w.truth.Agents[name].Control.Acked
	case *team.Used:
		w.counted[body.Session] += body.Usage.InputTokens
		day := name + " " + body.Usage.Day
		w.countedDay[day] += body.Usage.InputTokens
		u := w.truth.Agents[name].Usage
		checks{w}.check(countedOnce, u.InputTokens == w.countedDay[name+" "+u.Day], "%s used %d tokens on %s, but reported %d", name,
			u.InputTokens, u.Day, w.countedDay[day])
	}
}

func afterSlash(s string) string { return s[strings.IndexByte(s, '/')+1:] }

// agentIn returns the agent of a session: coder for coder-17.
func agentIn(session string) string { return session[:strings.LastIndexByte(session, '-')] }
