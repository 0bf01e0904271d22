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

	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// coverage counts what Decide returned in the tests of this package.
var coverage = machinetest.NewCoverage()

// decide is the only way in which the tests of this package ask: it counts what was emitted, and
// holds what is so of every decision. A refusal is an answer.
func decide(t testing.TB, c *Crew, in Input, now Now) ([]Change, error) {
	t.Helper()
	changes, err := c.Decide(in, now)
	if err != nil && len(changes) > 0 {
		t.Fatalf("refused, and changed all the same: %v, %+v", err, changes)
	}
	for _, ch := range changes {
		coverage.Row(ch.Row)
		switch {
		case ch.Body.Words != nil:
		case ch.Doc != "":
			coverage.Pair("of a document", ch.From, ch.Trigger)
			if rule := Table()[Status(ch.From)][Event(ch.Trigger)]; rule.ID != ch.Row || string(rule.To) != ch.To {
				t.Fatalf("%s: %s -> %s by %s is no row of the table", ch.Trigger, ch.From, ch.To, ch.Row)
			}
		default:
			coverage.Pair("of the lead", ch.From, ch.Trigger)
			if rule := LeadTable()[Stage(ch.From)][LeadEvent(ch.Trigger)]; rule.ID != ch.Row {
				t.Fatalf("%s: %s -> %s by %s is no row of the lead's table", ch.Trigger, ch.From, ch.To, ch.Row)
			}
		}
	}
	quietRows(c, in, changes, err)
	return changes, err
}

// quietRows counts the three rows that change no document: a placeholder that is not listed, one
// that is, and a request to wake an unknown member.
func quietRows(c *Crew, in Input, changes []Change, err error) {
	quiet := func(doc *Document, event Event) {
		if doc.Visible() && !slices.ContainsFunc(changes, func(ch Change) bool { return ch.Doc == doc.ID }) {
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
			due := func(ch Change) bool { return ch.Trigger == string(RegisterDue) }
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

// TestMain also fails if no test took some row of the tables.
func TestMain(m *testing.M) {
	documents, lead := machinetest.Table{Name: "of a document", Rows: Table().Rows()}, machinetest.Table{Name: "of the lead", Rows: LeadTable().Rows()}
	coverage.Main(m, append(machinetest.IDs(documents, lead), "L9"), documents, lead)
}

func TestMatrix(t *testing.T) {
	golden.Check(t, filepath.Join("testdata", "matrix.txt"), Table().Matrix()+"\n"+LeadTable().Matrix())
}

// Expired is final: an expired document stays expired, and only placeholders expire.
func TestExpiredIsTerminal(t *testing.T) {
	for event, rule := range Table()[Expired] {
		if rule.To != Expired {
			t.Errorf("%s brings an expired one back as %s", event, rule.To)
		}
	}
	for from, rules := range Table() {
		for event, rule := range rules {
			switch {
			case rule.To == None:
				t.Errorf("%s deletes one that is %s", event, from)
			case rule.To == Expired && from != Hatching && from != Expired && event != ImportedExpired:
				t.Errorf("%s has one expire that is %s", event, from)
			case rule.To == Alive && event != ListedAlive && event != RegisteredHere && from != Alive:
				t.Errorf("%s makes one alive that is %s, and is no word of the lead", event, from)
			}
		}
	}
}

// What every stage must be able to take, whatever else it does.
func TestLeadTableIsTotalWhereItMustBe(t *testing.T) {
	for _, stage := range []Stage{Idle, Summoning, Asking, Waking} {
		for _, event := range []LeadEvent{Forgotten, Adopted, Configured, Ended, Told, ReportedAll, StatusMissing, Noticed} {
			if _, ok := LeadTable()[stage][event]; !ok {
				t.Errorf("%s does not take %s", stage, event)
			}
		}
		if stage == Idle {
			continue
		}
		for _, event := range []LeadEvent{FellSilent, SpokeOn} {
			if _, ok := LeadTable()[stage][event]; !ok {
				t.Errorf("%s does not take %s", stage, event)
			}
		}
		for _, ends := range []LeadEvent{Ended, FellSilent, ReportedAll} {
			if rule := LeadTable()[stage][ends]; rule.To != Idle || !slices.Contains(rule.Do, EndCeremony) {
				t.Errorf("%s does not end by %s", stage, ends)
			}
		}
	}
}

// Every act that has a name is used, and every one that is used has a name.
func TestEveryActIsUsed(t *testing.T) {
	used := map[string]bool{}
	for _, row := range slices.Concat(Table().Rows(), LeadTable().Rows()) {
		for _, act := range row.Do {
			used[act] = true
		}
	}
	for _, act := range []Act{TakeIdentity, NoteAlive, AskToRegist, Refuse, TakeExtra} {
		if !used[string(act)] {
			t.Errorf("no row does %s", act)
		}
		delete(used, string(act))
	}
	acts := []LeadAct{
		Configure, TakeSession, Forget, DropSession, DropActions, QueueStatus, QueueSummon, QueueWake, NoteWho, NarrowWake,
		QueueRegister, DropAction, NoteReport, EndCeremony, NoteSilence, MoreTime, TellAgain,
	}
	for _, act := range acts {
		if !used[string(act)] {
			t.Errorf("no row does %s", act)
		}
		delete(used, string(act))
	}
	if len(used) > 0 {
		t.Errorf("the tables do what has no name: %v", slices.Sorted(maps.Keys(used)))
	}
}

// journaled is a change as the journal gives it back.
func journaled(t testing.TB, ch Change) Change {
	t.Helper()
	b, err := json.Marshal(ch.Body)
	if err != nil {
		t.Fatal(err)
	}
	var body Body
	if err := json.Unmarshal(b, &body); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(ch.Body, body) {
		t.Fatalf("the journal gives something else back of %s:\n%s", ch.Trigger, cmp.Diff(ch.Body, body))
	}
	ch.Body = body
	return ch
}

// snapshot is the crew as a snapshot gives it back.
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

// rendered stands for the identity of the bytes that a document is written as.
func rendered(d *Document) string {
	return fmt.Sprintf("%s/%s/%s/%d", d.ID, d.Status, d.Name, d.LastAliveAt.Unix())
}

// noLead is a crew without a lead; aCrew is led by julian.
func noLead() *Crew { return &Crew{Render: rendered} }

func aCrew(t testing.TB, size int) *Crew {
	t.Helper()
	c := noLead()
	must(t, c, LeadConfigured{Agent: "julian", Size: size}, Now{At: machinetest.Noon})
	return c
}

// must decides and applies what has to come to something.
func must(t testing.TB, c *Crew, in Input, now Now) {
	t.Helper()
	changes, err := decide(t, c, in, now)
	if err != nil || len(changes) == 0 {
		t.Fatalf("%T %+v comes to nothing: %v", in, in, err)
	}
	for _, ch := range changes {
		c.Apply(journaled(t, ch))
	}
}
