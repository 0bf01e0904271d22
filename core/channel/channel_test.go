package channel

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// coverage counts what Decide returned in the tests of this package.
var coverage = machinetest.NewCoverage()

// decide calls Decide and counts the rows of its changes. All tests of this package use it, except
// the benchmarks. A refusal is a normal result.
func decide(t testing.TB, cs *Channels, in Input, now Now) ([]change.Change, error) {
	t.Helper()
	changes, err := cs.Decide(in, now)
	if err != nil && len(changes) > 0 {
		t.Fatalf("a refusal came with changes: %v, %+v", err, changes)
	}
	for _, ch := range changes {
		coverage.Row(ch.Row)
		for _, m := range change.As[Set](ch.Body).Body.Messages {
			coverage.Row(m.Row)
		}
		if ch.From != "" {
			coverage.Pair("", ch.From, ch.Trigger)
			if rule := Table[State(ch.From)][Event(ch.Trigger)]; rule.ID != ch.Row || string(rule.To) != ch.To {
				t.Fatalf("%s %s -> %s by %s is no row of the table", ch.Trigger, ch.From, ch.To, ch.Row)
			}
		}
	}
	return changes, err
}

// TestMain also fails if no test used some row of the tables.
func TestMain(m *testing.M) {
	rows := slices.Concat(machinetest.Numbered("T", 23), machinetest.IDs(machinetest.Table{Rows: MessageTable.Rows()}),
		[]string{"X9", rowConfigured, rowSaid, rowLate, rowAside, rowParked, rowConfirmed, rowForgotten, rowUnfinished})
	coverage.Main(m, rows, machinetest.Table{Rows: Table.Rows()})
}

func TestMatrix(t *testing.T) {
	golden.Check(t, filepath.Join("testdata", "matrix.txt"), Table.Matrix()+"\n"+MessageTable.Matrix())
}

// TestEveryStateTakesTheseEvents checks the events that every state must accept.
func TestEveryStateTakesTheseEvents(t *testing.T) {
	for _, state := range []State{Idle, Queued, Active, Waiting} {
		for _, event := range []Event{Disconnected, Crashed, BeatsMissed, Disabled, Removed} {
			if _, ok := Table[state][event]; !ok {
				t.Errorf("%s does not take %s", state, event)
			}
		}
	}
	for _, state := range []State{Active, Waiting} {
		for _, event := range []Event{
			Completed, CompletedAlone, CompletedEmpty, CompletedEmptyAlone, Skipped, Displaced, LimitReached,
			AsideAnswered,
		} {
			if _, ok := Table[state][event]; !ok {
				t.Errorf("%s does not take %s", state, event)
			}
		}
	}
}

// TestEveryActIsUsed checks that the table uses every act and no unnamed one.
func TestEveryActIsUsed(t *testing.T) {
	used := map[string]bool{}
	for _, row := range Table.Rows() {
		for _, act := range row.Do {
			used[act] = true
		}
	}
	acts := []Act{
		JoinQueue, LeaveQueue, LeaveRotation, TakeTurn, StartTurnTimer, PauseTurnTimer, ResumeTimer, StartWaitTimer, StopWaitTimer,
		EndTurn, LoseTurn, CloseMessages, RestHere, CancelWork, GoOn, CountPass, AnnounceLate, AnnounceGone, NoteContext,
	}
	for _, act := range acts {
		if !used[string(act)] {
			t.Errorf("no row uses %s", act)
		}
		delete(used, string(act))
	}
	if len(used) > 0 {
		t.Errorf("the table uses unnamed acts: %v", slices.Collect(maps.Keys(used)))
	}
}

// X6: the log names triggers as the seed does.
func TestTriggers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from    State
		trigger Event
		want    string
	}{
		{Idle, Disconnected, "Agent stops"},
		{Queued, Disconnected, "Agent disconnects"},
		{Active, Completed, "TURN_COMPLETE"},
		{Active, CompletedEmpty, "TURN_COMPLETE"},
		{Waiting, CompletedEmptyAlone, "TURN_COMPLETE"},
		{Active, Skipped, "skipped"},
	} {
		if got := TriggerFrom(c.from, c.trigger); got != c.want {
			t.Errorf("the trigger of %s from %s is %q, want %q", c.trigger, c.from, got, c.want)
		}
	}
}

// journaled returns a change after encoding and decoding it as the journal does.
func journaled(t testing.TB, ch change.Change) change.Change {
	t.Helper()
	b, err := change.Encode(ch.Body)
	if err != nil {
		t.Fatal(err)
	}
	body, err := (change.Bodies{&Set{}}).Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ch.Body, body); diff != "" {
		t.Fatalf("%s differs after decoding:\n%s", ch.Trigger, diff)
	}
	ch.Body = body
	return ch
}

// snapshot returns the state after encoding and decoding it as a snapshot.
func snapshot(t testing.TB, cs *Channels) *Channels {
	t.Helper()
	b, err := json.Marshal(cs)
	if err != nil {
		t.Fatal(err)
	}
	back := &Channels{}
	if err := json.Unmarshal(b, back); err != nil {
		t.Fatal(err)
	}
	return back
}
