package crew

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// coverage counts what Decide returned in the tests of this package.
var coverage = machinetest.NewCoverage()

// decide calls Decide, counts the rows of its changes, and checks what must hold for every result.
// All tests of this package use it. A refusal is a normal result.
func decide(t testing.TB, c *Crew, in Input, now Now) ([]change.Change, error) {
	t.Helper()
	changes, err := c.Decide(in, now)
	if err != nil && len(changes) > 0 {
		t.Fatalf("a refusal came with changes: %v, %+v", err, changes)
	}
	for _, ch := range changes {
		coverage.Row(ch.Row)
		switch {
		case change.As[Body](ch.Body).Words != nil:
		case DocOf(&ch) != "":
			coverage.Pair("of a document", ch.From, ch.Trigger)
			if rule := Table[Status(ch.From)][Event(ch.Trigger)]; rule.ID != ch.Row || string(rule.To) != ch.To {
				t.Fatalf("%s: %s -> %s by %s is no row of the table", ch.Trigger, ch.From, ch.To, ch.Row)
			}
		default:
			coverage.Pair("of the lead", ch.From, ch.Trigger)
			if rule := LeadTable[Stage(ch.From)][LeadEvent(ch.Trigger)]; rule.ID != ch.Row {
				t.Fatalf("%s: %s -> %s by %s is no row of the lead's table", ch.Trigger, ch.From, ch.To, ch.Row)
			}
		}
	}
	quietRows(c, in, changes, err)
	return changes, err
}

// quietRows counts the three rows that change no document: a placeholder that is not listed, a
// placeholder that is listed, and a request to wake an unknown member.
func quietRows(c *Crew, in Input, changes []change.Change, err error) {
	quiet := func(doc *Document, event Event) {
		if doc.Visible() && !slices.ContainsFunc(changes, func(ch change.Change) bool { return DocOf(&ch) == doc.ID }) {
			coverage.Pair("of a document", string(doc.Status), string(event))
		}
	}
	for _, doc := range c.Docs {
		switch in := in.(type) {
		case Reported:
			if err != nil || in.Session != c.Lead.Session || doc.Status != Hatching {
				continue
			}
			listed := func(l Listed) bool { return l.Seat == doc.Seat }
			due := func(ch change.Change) bool { return ch.Trigger == string(RegisterDue) }
			if !slices.ContainsFunc(in.Agents, listed) {
				quiet(doc, NotListed)
			} else if slices.ContainsFunc(changes, due) {
				quiet(doc, ListedAlive)
			}
		case WakeAsked:
			if len(changes) > 0 && doc.Status == Unknown {
				quiet(doc, Woken)
			}
		}
	}
}

// TestMain also fails if no test used some row of the tables.
func TestMain(m *testing.M) {
	documents, lead := machinetest.Table{Name: "of a document", Rows: Table.Rows()},
		machinetest.Table{Name: "of the lead", Rows: LeadTable.Rows()}
	coverage.Main(m, append(machinetest.IDs(documents, lead), "L9"), documents, lead)
}

func TestMatrix(t *testing.T) {
	golden.Check(t, filepath.Join("testdata", "matrix.txt"), Table.Matrix()+"\n"+LeadTable.Matrix())
}

// TestExpiredIsTerminal checks that an expired document stays expired, and that only placeholders
// expire.
func TestExpiredIsTerminal(t *testing.T) {
	for event, rule := range Table[Expired] {
		if rule.To != Expired {
			t.Errorf("%s changes an expired document to %s", event, rule.To)
		}
	}
	for from, rules := range Table {
		for event, rule := range rules {
			switch {
			case rule.To == None:
				t.Errorf("%s deletes a document that is %s", event, from)
			case rule.To == Expired && from != Hatching && from != Expired && event != ImportedExpired:
				t.Errorf("%s expires a document that is %s", event, from)
			case rule.To == Alive && event != ListedAlive && event != RegisteredHere && from != Alive:
				t.Errorf("%s makes a %s document alive without a report of the lead", event, from)
			}
		}
	}
}

// TestEveryStageTakesTheseEvents checks the events that every stage must accept.
func TestEveryStageTakesTheseEvents(t *testing.T) {
	for _, stage := range []Stage{Idle, Summoning, Asking, Waking} {
		for _, event := range []LeadEvent{Forgotten, Adopted, Configured, Ended, Received, ReportedAll, StatusMissing, Noticed} {
			if _, ok := LeadTable[stage][event]; !ok {
				t.Errorf("%s does not take %s", stage, event)
			}
		}
		if stage == Idle {
			continue
		}
		for _, event := range []LeadEvent{FellSilent, SpokeOn} {
			if _, ok := LeadTable[stage][event]; !ok {
				t.Errorf("%s does not take %s", stage, event)
			}
		}
		for _, ends := range []LeadEvent{Ended, FellSilent, ReportedAll} {
			if rule := LeadTable[stage][ends]; rule.To != Idle || !slices.Contains(rule.Do, EndCeremony) {
				t.Errorf("%s does not end by %s", stage, ends)
			}
		}
	}
}

// TestEveryActIsUsed checks that the tables use every named act and no unnamed one.
func TestEveryActIsUsed(t *testing.T) {
	used := map[string]bool{}
	for _, row := range slices.Concat(Table.Rows(), LeadTable.Rows()) {
		for _, act := range row.Do {
			used[act] = true
		}
	}
	for _, act := range []Act{TakeIdentity, NoteAlive, AskToRegist, Refuse, TakeExtra} {
		if !used[string(act)] {
			t.Errorf("no row uses %s", act)
		}
		delete(used, string(act))
	}
	acts := []LeadAct{
		Configure, TakeSession, Forget, DropSession, DropActions, QueueStatus, QueueSummon, QueueWake, NoteWho, NarrowWake,
		QueueRegister, DropAction, NoteReport, EndCeremony, NoteSilence, MoreTime, TellAgain,
	}
	for _, act := range acts {
		if !used[string(act)] {
			t.Errorf("no row uses %s", act)
		}
		delete(used, string(act))
	}
	if len(used) > 0 {
		t.Errorf("the tables use unnamed acts: %v", slices.Sorted(maps.Keys(used)))
	}
}

// journaled returns a change after encoding and decoding it as the journal does.
func journaled(t testing.TB, ch change.Change) change.Change {
	t.Helper()
	b, err := change.Encode(ch.Body)
	if err != nil {
		t.Fatal(err)
	}
	body, err := change.Bodies{&Body{}}.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(ch.Body, body) {
		t.Fatalf("%s differs after decoding:\n%s", ch.Trigger, cmp.Diff(ch.Body, body))
	}
	ch.Body = body
	return ch
}

// snapshot returns the crew after encoding and decoding it as a snapshot.
func snapshot(t testing.TB, c *Crew) *Crew {
	t.Helper()
	back := &Crew{}
	if err := json.Unmarshal([]byte(snapshotText(t, c)), back); err != nil {
		t.Fatal(err)
	}
	back.Render = c.Render
	return back
}

func snapshotText(t testing.TB, c *Crew) string {
	t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// rendered returns a replacement for the identity of a document's bytes.
func rendered(d *Document) string {
	return fmt.Sprintf("%s/%s/%s/%d", d.ID, d.Status, d.Name, d.LastAliveAt.Unix())
}

// noLead returns a crew without a lead; aCrew returns one that julian leads.
func noLead() *Crew { return &Crew{Render: rendered} }

func aCrew(t testing.TB, size int) *Crew {
	t.Helper()
	c := noLead()
	must(t, c, LeadConfigured{Agent: "julian", Size: size}, Now{At: machinetest.Noon})
	return c
}

// must decides and applies an input that must cause a change.
func must(t testing.TB, c *Crew, in Input, now Now) {
	t.Helper()
	changes, err := decide(t, c, in, now)
	if err != nil || len(changes) == 0 {
		t.Fatalf("%T %+v has no effect: %v", in, in, err)
	}
	for _, ch := range changes {
		c.Apply(journaled(t, ch))
	}
}
