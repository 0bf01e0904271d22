package control

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
	"github.com/google/go-cmp/cmp"
)

// world records what happened besides the machine: the inputs, and the sessions that were opened.
// It uses no table.
type world struct {
	t       testing.TB
	agent   Control
	now     Now
	open    Kind               // the open session; empty: none
	ran     bool               // its process has started
	spentOn map[uint64]int     // desired state number → sessions that started for it
	wishes  map[uint64]Desired // desired state number → desired state
	journal [][]byte
}

func newWorld(t testing.TB, p Policy) *world {
	return &world{
		t: t, agent: Control{Name: "coder", Policy: p, Value: Value{State: Absent}}, now: Now{At: machinetest.Noon},
		spentOn: map[uint64]int{}, wishes: map[uint64]Desired{},
	}
}

// TestRandomOrders applies random inputs to a thousand agents and checks the invariants after each
// one. To repeat a run: -run 'RandomOrders/seed=7$'
func TestRandomOrders(t *testing.T) {
	for seed := range uint64(1000) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			w := newWorld(t, anyPolicy(rnd))
			for range 200 {
				w.happen(rnd.Uint64())
			}
			w.replay()
		})
	}
}

// FuzzOrders applies inputs that the fuzzer chooses.
func FuzzOrders(f *testing.F) {
	f.Add([]byte{0, 4, 0, 0, 5, 1, 12, 0, 13, 0})
	f.Add([]byte{1, 4, 3, 0, 1, 0, 3, 7, 12, 9, 14, 2})
	f.Add([]byte{3, 4, 8, 0, 1, 2, 9, 0, 15, 1, 10, 3, 12, 5})
	f.Fuzz(func(t *testing.T, orders []byte) {
		if len(orders) == 0 || len(orders) > 1000 {
			return
		}
		rnd := rand.New(rand.NewPCG(uint64(orders[0]), 1))
		w := newWorld(t, anyPolicy(rnd))
		for i := 1; i+1 < len(orders); i += 2 {
			w.happen(uint64(orders[i]) | uint64(orders[i+1])<<8 | rnd.Uint64()<<16)
		}
		w.replay()
	})
}

func anyPolicy(rnd *rand.Rand) Policy {
	p := policy
	p.FailuresMax = 1 + rnd.IntN(4)
	p.CleanupEvery = rnd.IntN(4)
	p.Foreign = rnd.IntN(4) == 0
	p.Program = p.Foreign && rnd.IntN(2) == 0
	return p
}

var (
	anyWord    = []string{WordContinuous, WordContinuous, WordRunOnce, WordRunCleanup, WordPause, "turbo", ""}
	anyOutcome = []Outcome{OK, OK, OK, Failed, Failed, CannotStart, Lost, Withdrawn, Cancelled, RateLimited, Anew}
	anyNote    = []string{"", "a", "b", "Started via Mission Control (auto mode)"}
	anyBy      = []string{"human", "human", "agent", ""}
)

func from[T any](list []T, n uint64) T { return list[n%uint64(len(list))] }

// happen applies one random input. The low byte chooses its kind, the rest its details.
func (w *world) happen(n uint64) {
	w.now.At = w.now.At.Add(time.Duration(n>>8%3000) * time.Millisecond)
	how := n >> 8
	switch n & 0xff % 20 {
	case 0, 1, 2:
		w.decide(Commanded{Desired: from(anyWord, how), By: from(anyBy, how>>8), Note: from(anyNote, how>>16)})
	case 3, 4, 5:
		w.now.InSession, w.now.Asked = how>>30%2 == 0, how>>31%2 == 0
		w.decide(w.anyFile(how))
	case 6:
		w.decide(FileGone{})
	case 7:
		w.decide(FileBroken{KeptAs: "agent_state.json.corrupt-1", Fault: "half", Torn: how%2 == 0})
	case 8:
		w.restart(how)
	case 9:
		w.now.Held = !w.now.Held
		if w.now.Held {
			w.decide(Held{})
		} else {
			w.decide(Released{})
		}
	case 10:
		w.now.Stopping = true
		w.decide(Stopping{})
	case 11:
		w.now.OverLimit = from([]string{"", "tokens_per_day 100"}, how)
		if w.now.OverLimit != "" {
			w.decide(LimitHit{Limit: w.now.OverLimit})
		}
	case 12:
		if w.ran {
			w.decide(LimitHit{Limit: "session 10m0s"})
		}
	case 13, 14:
		if retry := w.agent.Retry(); !retry.IsZero() && how%4 != 0 {
			w.now.At = retry
			w.decide(Elapsed{RetryAt: retry})
		} else {
			w.decide(Elapsed{RetryAt: w.now.At})
		}
	case 15: // a global switch was set and this agent does not have it yet
		switch how % 3 {
		case 0:
			w.now.Held = !w.now.Held
		case 1:
			w.now.Stopping = !w.now.Stopping
		default:
			w.now.OverLimit = ""
		}
	default:
		w.end(how)
	}
	w.check()
}

// end starts the process of the open session, or ends it.
func (w *world) end(how uint64) {
	if w.open == "" {
		return
	}
	if !w.ran && how%3 == 0 {
		w.begin()
		return
	}
	ended := Ended{
		Kind: w.open, Outcome: from(anyOutcome, how), Why: "so", Ran: time.Duration(how>>8%200) * time.Second,
		AtStart: how>>16%4 == 0,
	}
	switch {
	case w.ran && (ended.Outcome == Withdrawn || ended.Outcome == CannotStart):
		ended.Outcome = OK
	case !w.ran && ended.Outcome != Withdrawn && ended.Outcome != CannotStart:
		w.begin()
	}
	if (ended.Outcome == RateLimited || ended.Outcome == Anew) && w.open != Program {
		w.spentOn[w.agent.Acked]-- // after a rate limit the session counts as not done
	}
	w.open, w.ran = "", false
	w.decide(ended)
}

func (w *world) begin() {
	w.ran = true
	if w.open != Program {
		w.spentOn[w.agent.Acked]++
	}
}

func (w *world) restart(how uint64) {
	w.now.Stopping = false
	if how%8 == 0 && w.open == "" {
		w.agent.Policy.Foreign = !w.agent.Policy.Foreign
		w.agent.Policy.Program = w.agent.Policy.Foreign && how%16 == 0
	}
	if w.ran && how%2 == 0 {
		w.decide(Adopted{})
	}
	w.decide(Started{})
}

// anyFile returns a file as another program may write it: the current content with at most one
// difference.
func (w *world) anyFile(how uint64) FileRead {
	f := w.agent.File(w.now.Held)
	in := FileRead{Desired: f.Desired, Current: f.Current, By: f.By, Note: f.Note, Stamp: f.Stamp, Extra: f.Extra, First: how%5 == 0}
	in.Unwritten = how>>40%4 == 0
	if how&1 != 0 {
		in.Desired = from(anyWord, how>>8)
	}
	if how&2 != 0 {
		in.Current = from(anyWord, how>>12)
	}
	if how&4 != 0 {
		in.By, in.Note = from(anyBy, how>>16), from(anyNote, how>>18)
	}
	if how&8 != 0 {
		in.Extra = from([]string{"", `{"team":"blue"}`}, how>>20)
	}
	switch how >> 4 % 8 {
	case 0:
		in.Stamp = time.Time{}
	case 1:
		in.Stamp = in.Stamp.Add(-time.Hour)
	case 2:
	case 3:
		in.Stamp = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	default:
		in.Stamp = w.now.At.Add(time.Duration(how>>24%2_000_000) * time.Microsecond)
	}
	return in
}

func (w *world) decide(in Input) {
	changes, err := decide(w.t, &w.agent, in, w.now)
	if err != nil {
		if _, ok := in.(Ended); ok {
			w.t.Fatalf("the end of a session was refused: %v", err)
		}
		return
	}
	for _, ch := range changes {
		line, err := json.Marshal(bodyOf(ch).Value)
		if err != nil {
			w.t.Fatalf("cannot encode the change: %v", err)
		}
		w.journal = append(w.journal, line)
		was := w.agent.Value
		w.agent.Apply(ch)
		w.judge(was, ch, in)
	}
}

// judge checks one change against the specification.
func (w *world) judge(was Value, ch change.Change, in Input) {
	kind, is := Opens(ch), bodyOf(ch).Value
	if kind != "" {
		switch {
		case w.open != "":
			w.t.Fatalf("%s: a second session is opened", ch.Trigger)
		case w.now.Held || w.now.Stopping || w.now.OverLimit != "":
			w.t.Fatalf("%s: a session is opened during %+v", ch.Trigger, w.now)
		case kind == Program && is.State != Foreign:
			w.t.Fatalf("%s: a program is started for an agent that is not foreign", ch.Trigger)
		case kind != Program && (is.word() == WordPause || is.word() != is.Current()):
			w.t.Fatalf("%s: a session is opened for %s, but the desired state is %s", ch.Trigger, is.Current(), is.word())
		case kind == Cleanup && is.word() == WordRunOnce, kind == Work && is.word() == WordRunCleanup:
			w.t.Fatalf("%s: %s is opened for %s", ch.Trigger, kind, is.word())
		}
		w.open, w.ran = kind, false
	}
	if Ends(ch) && w.open == "" {
		w.t.Fatalf("%s: no session is open that could be ended", ch.Trigger)
	}
	if is.Desired.N < was.Desired.N || (is.Desired.N == was.Desired.N && is.Desired != was.Desired) {
		w.t.Fatalf("%s: the desired state changed without a new number:\n%s", ch.Trigger, cmp.Diff(was.Desired, is.Desired))
	}
	if is.Desired.N == was.Desired.N {
		return
	}
	w.wishes[is.Desired.N] = is.Desired
	switch in := in.(type) {
	case Commanded:
		if is.Desired.By == "agent" && ch.Row != "C17" && in.By != "agent" {
			w.t.Fatalf("%s: a person's command counts as the agent's: %+v", ch.Trigger, is.Desired)
		}
		return
	case FileRead, FileGone, FileBroken:
		return
	}
	// The desired state changed without a request. Only some rows may do that, with a note, and
	// only if a session has followed the previous one.
	switch {
	case is.Desired.State != WordPause || is.Desired.By != ByFairlead || is.Desired.Note == "":
		w.t.Fatalf("%s: a desired state without an author: %+v", ch.Trigger, is.Desired)
	case ch.Row == "C16" || ch.Row == "C17" || ch.Row == "F1": // these rows note a reason, whatever the desired state was
	case ch.Row == "C8" || ch.Row == "C9" || ch.Row == "C20" || ch.Row == "C15":
		if was.Desired.N > was.Acked {
			w.t.Fatalf("%s: desired state %d was overwritten at the end of a session for desired state %d: %+v", ch.Trigger, was.Desired.N,
				was.Acked, was.Desired)
		}
	default:
		w.t.Fatalf("%s: row %s overwrites the desired state", ch.Trigger, ch.Row)
	}
}

// check checks the invariants after every input.
func (w *world) check() {
	a := &w.agent
	running := a.UnderWay() || a.Running
	switch {
	case running != (w.open != ""):
		w.t.Fatalf("%s, running %v, and the open session is %q", a.State, a.Running, w.open)
	case a.UnderWay() && w.open == Program, a.Running && w.open != Program:
		w.t.Fatalf("%s, running %v, and the open session is a %s", a.State, a.Running, w.open)
	case a.Acked > a.Desired.N:
		w.t.Fatalf("a session follows desired state %d of only %d", a.Acked, a.Desired.N)
	case a.State == BackingOff && a.RetryAt.IsZero():
		w.t.Fatal("a back-off without an end")
	case a.State == BackingOff && a.word() != WordContinuous:
		w.t.Fatalf("backing off, but the desired state is %s", a.word())
	case a.State == BackingOff && a.RetryAt.After(w.now.At.Add(a.Policy.BackoffMax)):
		w.t.Fatalf("backing off until %s, but it is already %s", a.RetryAt, w.now.At)
	case a.Limit != "" && !a.UnderWay():
		w.t.Fatal("the limit of a session that has ended")
	case a.State == Continuous && a.Failures > a.Policy.FailuresMax:
		w.t.Fatalf("%d failures without giving up", a.Failures)
	}
	for n, times := range w.spentOn {
		if wish := w.wishes[n]; times > 1 && (wish.State == WordRunOnce || wish.State == WordRunCleanup) {
			w.t.Fatalf("desired state %d, %s, had %d sessions", n, wish.State, times)
		}
	}
}

// replay decodes the journal without the table and checks that the agent is the same.
func (w *world) replay() {
	again := Control{Name: w.agent.Name, Policy: w.agent.Policy, Value: Value{State: Absent}}
	for _, line := range w.journal {
		var v Value
		if err := json.Unmarshal(line, &v); err != nil {
			w.t.Fatal(err)
		}
		again.Apply(change.Change{Body: &Body{Value: v}})
	}
	if diff := cmp.Diff(w.agent, again); diff != "" {
		w.t.Fatalf("the replayed agent differs:\n%s", diff)
	}
}
