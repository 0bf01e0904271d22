package control

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// policy is the policy of an agent without any settings.
var policy = Policy{FailuresMax: 5, BackoffFirst: time.Second, BackoffMax: time.Minute}

// coverage counts what Decide returned in the tests of this package.
var coverage = machinetest.NewCoverage()

// decide calls Decide, counts the rows of its changes, and checks what must hold for every result.
// All tests of this package use it. A refusal is a normal result.
func decide(t testing.TB, c *Control, in Input, now Now) ([]change.Change, error) {
	t.Helper()
	before := *c
	changes, err := c.Decide(in, now)
	if *c != before {
		t.Fatalf("Decide changed the agent:\n%s", cmp.Diff(before, *c))
	}
	if err != nil && len(changes) > 0 {
		t.Fatalf("a refusal came with changes: %v, %+v", err, changes)
	}
	last := before.Value
	for _, ch := range changes {
		value := bodyOf(ch).Value
		coverage.Row(ch.Row)
		coverage.Pair("", ch.From, ch.Trigger)
		if ch.From != string(last.State) || ch.To != string(value.State) {
			t.Fatalf("a change from %s to %s comes between %s and %s", ch.From, ch.To, last.State, value.State)
		}
		if value.Stamp.Before(last.Stamp) {
			t.Fatalf("%s: the timestamp decreased from %s to %s", ch.Trigger, last.Stamp, value.Stamp)
		}
		was, is := Control{Name: c.Name, Policy: c.Policy, Value: last}, Control{Name: c.Name, Policy: c.Policy, Value: value}
		says, said := is.File(now.Held), was.File(now.Held)
		says.Stamp, said.Stamp = time.Time{}, time.Time{}
		if says != said && is.State != Foreign && !value.Stamp.After(last.Stamp) {
			t.Fatalf("%s: the file changed but its timestamp did not:\n%s", ch.Trigger, cmp.Diff(said, says))
		}
		last = value
	}
	return changes, err
}

func bodyOf(ch change.Change) *Body { return change.As[Body](ch.Body) }

// TestMain also fails if no test used some row of the tables.
func TestMain(m *testing.M) {
	table := machinetest.Table{Rows: Table.Rows()}
	coverage.Main(m, slices.Concat([]string{"X7"}, machinetest.Numbered("C", 22), machinetest.IDs(table)), table)
}

func TestMatrix(t *testing.T) {
	golden.Check(t, filepath.Join("testdata", "matrix.txt"), Table.Matrix())
}

// TestNoDeadEnds checks that every state can be reached, and that each state can lead to rest and
// to work.
func TestNoDeadEnds(t *testing.T) {
	reach := func(from State) map[State]bool {
		seen, todo := map[State]bool{from: true}, []State{from}
		for len(todo) > 0 {
			state := todo[0]
			todo = todo[1:]
			for _, rule := range Table[state] {
				if !seen[rule.To] {
					seen[rule.To] = true
					todo = append(todo, rule.To)
				}
			}
		}
		return seen
	}
	all := reach(Absent)
	for _, state := range Table.States() {
		if !all[state] {
			t.Errorf("%s cannot be reached", state)
		}
		from := reach(state)
		for _, to := range []State{Resting, Continuous} {
			if !from[to] {
				t.Errorf("%s cannot lead to %s", state, to)
			}
		}
	}
}

// TestEveryStateTakesTheseEvents checks the events that every state must accept.
func TestEveryStateTakesTheseEvents(t *testing.T) {
	wishes := []Event{
		WantedContinuous, WantedRunOnce, WantedRunCleanup, WantedPause, WantedUnknown, WantedHeld, WantedStopping, WantedOverLimit,
	}
	file := []Event{FileMissing, FileMalformed, FileTorn, ExtraWritten}
	for _, state := range Table.States() {
		if state == Absent {
			continue // before the first observation of the file
		}
		for _, event := range slices.Concat(wishes, file) {
			if _, ok := Table[state][event]; !ok {
				t.Errorf("%s does not take %s", state, event)
			}
		}
	}
	ends := map[State][]Event{
		Continuous: {
			EndedGoOn, EndedDesiredPause, EndedDesiredRunOnce, EndedDesiredRunCleanup, EndedDesiredUnknown, FailedBackingOff,
			FailedForGood, LostGoOn,
		},
		RunOnce: {
			OneShotEnded, OneShotFailed, OneShotLost, OneShotAgain, OneShotStillOwing, NewerContinuous, NewerRunCleanup,
			NewerPause, NewerUnknown,
		},
		RunCleanup: {
			OneShotEnded, OneShotFailed, OneShotLost, OneShotAgain, OneShotStillOwing, NewerContinuous, NewerRunOnce, NewerPause,
			NewerUnknown,
		},
	}
	for state, events := range ends {
		for _, event := range append(events, EndedLimited, EndedHeld, EndedStopping) {
			if _, ok := Table[state][event]; !ok {
				t.Errorf("%s does not take %s", state, event)
			}
		}
	}
}

// TestEveryActIsUsed checks that the table uses every named act and event.
func TestEveryActIsUsed(t *testing.T) {
	used := map[Act]bool{}
	for _, row := range Table.Rows() {
		for _, act := range row.Do {
			used[Act(act)] = true
		}
	}
	for _, act := range []Act{
		TakeDesired, RestDesired, SpendDesired, SpendOneShot, OpenSession, OpenCleanup, OpenProgram, EndSession, NoteLimit, CountSession,
		CountCleanup, CountFailure, ForgetFailures, StartBackoff, Rewrite, TakeExtra, TakeReport, NoteOvertaken, GiveUp,
	} {
		if !used[act] {
			t.Errorf("no row uses %s", act)
		}
		delete(used, act)
	}
	for act := range used {
		t.Errorf("the table uses the unnamed act %q", act)
	}
}

// SPEC J5: the badge depends only on current_state, as the seed's table says.
func TestBadge(t *testing.T) {
	for current, want := range map[string]string{
		"continuous": "RUNNING", "run_once": "RUNNING", "run_cleanup": "RUNNING", "pause": "IDLE", "": "IDLE", "sleeping": "IDLE",
	} {
		if got := Badge(current); got != want {
			t.Errorf("the badge of %q is %s, want %s", current, got, want)
		}
	}
}

// TestReplacedFileIsOlder checks content found in a replaced file, which is older than Fairlead's
// write. If a desired state was set since, the content is recorded without effect, in any state.
// Otherwise it is a command like any other.
func TestReplacedFileIsOlder(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	policy := Policy{FailuresMax: 5, BackoffFirst: time.Second, BackoffMax: time.Minute}
	older := FileRead{
		Desired: WordContinuous, Current: WordPause, By: "human", Note: "too late", Stamp: at.Add(-time.Second),
		Swapped: true,
	}
	for _, state := range []State{Resting, Continuous, RunOnce, RunCleanup, BackingOff} {
		c := &Control{
			Name: "coder", Policy: policy,
			Value: Value{State: state, Desired: Desired{State: WordPause, By: "human", At: at, N: 3}, Stamp: at},
		}
		changes, err := decide(t, c, older, Now{At: at.Add(time.Second)})
		if err != nil || len(changes) != 1 || changes[0].Row != "X3" || bodyOf(changes[0]).Overtaken == nil ||
			bodyOf(changes[0]).Overtaken.Note != "too late" {
			t.Fatalf("%s: an overtaken desired state is not recorded: %+v, %v", state, changes, err)
		}
		if diff := cmp.Diff(c.Value, bodyOf(changes[0]).Value); diff != "" {
			t.Errorf("%s: an overtaken desired state has an effect:\n%s", state, diff)
		}
	}
	c := &Control{
		Name: "coder", Policy: policy,
		Value: Value{State: Resting, Desired: Desired{State: WordPause, By: "human", At: at, N: 3}, Stamp: at.Add(time.Second)},
	}
	newer := older
	newer.Stamp = at.Add(500 * time.Millisecond)
	if changes, err := decide(t, c, newer, Now{At: at.Add(2 * time.Second)}); err != nil || len(changes) != 1 || changes[0].Row != "C2" {
		t.Errorf("a desired state that Fairlead overwrote is lost: %+v, %v", changes, err)
	}
}

// TestReportInAReplacedFile checks that the report of a foreign loop in a replaced file counts.
// Otherwise the end of its one-shot run would count as a pause by a person, and Fairlead's command
// would be lost.
func TestReportInAReplacedFile(t *testing.T) {
	foreign := policy
	foreign.Foreign = true
	c := &Control{Name: "coder", Policy: foreign, Value: Value{State: Absent}}
	play := func(in Input, after time.Duration) {
		changes, err := decide(t, c, in, Now{At: machinetest.Noon.Add(after)})
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range changes {
			c.Apply(ch)
		}
	}
	play(FileRead{Desired: WordRunOnce, Current: WordPause, By: "human", Stamp: machinetest.Noon, First: true}, 0)
	play(Commanded{Desired: WordContinuous, By: "human"}, 2*time.Second)
	play(FileRead{Desired: WordRunOnce, Current: WordRunOnce, By: "human", Stamp: machinetest.Noon.Add(time.Second), Swapped: true},
		3*time.Second)
	if c.Reported != WordRunOnce || c.Desired.State != WordContinuous {
		t.Fatalf("reported %q, desired %q", c.Reported, c.Desired.State)
	}
	play(FileRead{Desired: WordPause, Current: WordPause, By: "human", Stamp: machinetest.Noon.Add(time.Minute)}, time.Minute)
	if c.Desired.State != WordContinuous {
		t.Errorf("the command was lost: %+v", c.Desired)
	}
}

// F4: a loop that never reads its file between two writes overwrites an order. The order still
// applies, a person is asked to look after the first writes, and one change a second is recorded
// instead of one for each write. A new order starts a new count.
func TestLoopThatNeverReads(t *testing.T) {
	at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	c := &Control{Name: "coder", Policy: Policy{Foreign: true}, Value: Value{State: Absent}}
	do := func(in Input) (n int) {
		changes, err := decide(t, c, in, Now{At: at})
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range changes {
			c.Apply(ch)
		}
		return len(changes)
	}
	stale := FileRead{Desired: WordPause, Current: WordPause, By: "human", Note: "stop"}
	writes := func(from, to int) (changes int) {
		for range to - from {
			at = at.Add(70 * time.Millisecond)
			stale.Stamp = at
			changes += do(stale)
		}
		return changes
	}
	do(stale)
	do(Commanded{Desired: WordContinuous, By: "human"})
	if n := writes(0, buriedMax-1); n != buriedMax-1 || c.Overwritten() {
		t.Errorf("the first writes caused %d changes; overwritten: %v", n, c.Overwritten())
	}
	if writes(0, 1); !c.Overwritten() {
		t.Error("the order does not count as overwritten")
	}
	if n := writes(0, 143); n < 8 || n > 11 || c.Desired.State != WordContinuous {
		t.Errorf("%d changes in ten seconds; the desired state is %s", n, c.Desired.State)
	}
	if do(Commanded{Desired: WordRunOnce, By: "human"}); c.Overwritten() {
		t.Error("a new order counts as overwritten at once")
	}
	writes(0, buriedMax)
	if stale.Desired, stale.Current = WordRunOnce, WordRunOnce; writes(0, 1) != 1 || c.Overwritten() {
		t.Error("the loop has read the order, which still counts as overwritten")
	}
}
