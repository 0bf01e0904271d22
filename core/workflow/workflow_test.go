package workflow

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// noon is the start of every test.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// coverage counts what Decide returned in the tests of this package.
var coverage = machinetest.NewCoverage()

// decide calls Decide and counts the rows of its changes. All tests of this package use it. A
// refusal is a normal result.
func decide(t testing.TB, r *Run, in Input, now Now) ([]change.Change, error) {
	t.Helper()
	changes, err := r.Decide(in, now)
	if err != nil && len(changes) > 0 {
		t.Fatalf("a refusal came with changes: %v, %+v", err, changes)
	}
	if len(changes) > 1000 {
		t.Fatalf("%T: %d changes at once, but a batch of the journal has at most 1,000", in, len(changes))
	}
	for _, ch := range changes {
		coverage.Row(ch.Row)
		switch body := change.As[Body](ch.Body); {
		case body.Step != nil:
			coverage.Pair("of a step", ch.From, ch.Trigger)
		case body.Reset != nil:
			note(ch, body.Reset.Moves)
		case body.Moved != nil:
			note(ch, body.Moved.Moves)
		case body.Head != nil:
			coverage.Pair("of a run", ch.From, ch.Trigger)
		}
	}
	return changes, err
}

func note(ch change.Change, moves []Move) {
	for _, move := range moves {
		coverage.Pair("of a step", string(move.From), ch.Trigger)
	}
}

// TestMain also fails if no test used some row of the tables.
func TestMain(m *testing.M) {
	steps, runs := machinetest.Table{Name: "of a step", Rows: Table.Rows()}, machinetest.Table{Name: "of a run", Rows: RunTable.Rows()}
	rows := slices.Concat([]string{"J1", "X3", "X8", "X9"}, machinetest.Numbered("W", 16), machinetest.IDs(steps, runs))
	coverage.Main(m, rows, steps, runs)
}

func TestMatrix(t *testing.T) {
	golden.Check(t, filepath.Join("testdata", "matrix.txt"), "# a step\n"+Table.Matrix()+"\n# a run\n"+RunTable.Matrix())
}

// TestNoDeadEnds checks that every state can be reached and left. A settled state is left only when
// a gate or a person sends the run back.
func TestNoDeadEnds(t *testing.T) {
	for _, from := range Table.States() {
		seen, todo := map[State]bool{from: true}, []State{from}
		for len(todo) > 0 {
			for _, rule := range Table[todo[0]] {
				if !seen[rule.To] {
					seen[rule.To] = true
					todo = append(todo, rule.To)
				}
			}
			todo = todo[1:]
		}
		if len(seen) != 6 {
			t.Errorf("from %s only %v can be reached", from, seen)
		}
	}
}

// What sends steps back must be taken in every state, and what ends an attempt in RUNNING.
func TestTableIsTotalWhereItMustBe(t *testing.T) {
	for _, state := range Table.States() {
		for _, event := range []Event{LoopedBack, StartedOver} {
			if rule, ok := Table[state][event]; !ok || rule.To != Pending {
				t.Errorf("%s does not take %s to PENDING", state, event)
			}
		}
	}
	for _, event := range []Event{
		FailedTriesLeft, FailedForGood, LimitReached, CancelledByHand, Reported, ReportedAsking, ReportedUnasked, ItemDone, GateFailed,
		GateAtLimit, GateLeadsNowhere, ReportedAgain, UntilHolds, UntilFaulted, UntilNeverHeld, RunnerDied, Withdrawn, Adopted,
	} {
		if _, ok := Table[Running][event]; !ok {
			t.Errorf("RUNNING does not take %s", event)
		}
	}
}

// TestEveryActIsUsed checks that the table uses every named act and no unnamed one.
func TestEveryActIsUsed(t *testing.T) {
	used := map[Act]bool{}
	for _, row := range Table.Rows() {
		for _, act := range row.Do {
			used[Act(act)] = true
		}
	}
	for _, act := range []Act{
		CountAttempt, UncountAttempt, BeginProcess, ForgetProcess, EndProcess, StampStart, StampEnd, TakeReport, NoteUnasked, HoldReport,
		ClearReport, KeepError, ClearError, StartBackoff, StopBackoff, StartWait, StopWait, CountLoss, NoteWeighed, TakeItems, CountItem,
		NextItem, AskPeople,
		TakeAnswer, KeepFault, StartOver,
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

// same compares two runs without their derived fields, and returns the differences.
func same(a, b *Run) string {
	one, err1 := json.Marshal(a)
	two, err2 := json.Marshal(b)
	if err1 == nil && err2 == nil && string(one) == string(two) {
		return ""
	}
	return cmp.Diff(a, b, cmpopts.IgnoreUnexported(Run{}))
}

// journaled returns a change after encoding and decoding it as the journal does.
func journaled(t testing.TB, ch change.Change) change.Change {
	t.Helper()
	line, err := change.Encode(ch.Body)
	if err != nil {
		t.Fatalf("cannot encode the change: %v", err)
	}
	if len(line) > 1<<20 {
		t.Fatalf("a change of %s has %d bytes, more than the journal's 1 MiB", ch.Trigger, len(line))
	}
	if ch.Body, err = (change.Bodies{&Body{}}).Decode(line); err != nil {
		t.Fatal(err)
	}
	return ch
}

// restored returns a run after encoding and decoding it as a snapshot.
func restored(t testing.TB, r *Run) *Run {
	t.Helper()
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	again := &Run{}
	if err := json.Unmarshal(line, again); err != nil {
		t.Fatal(err)
	}
	return again
}
