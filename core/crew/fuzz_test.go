package crew

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// FuzzDecide applies unrealistic inputs: the bytes are read as a sequence of inputs with arbitrary
// names, seats, statuses and times. Decide must not panic, and all invariants of a crew must hold.
func FuzzDecide(f *testing.F) {
	f.Add([]byte(""), uint64(0))
	f.Add([]byte(`{"Reported":{"Session":"s1","Agents":[{"Name":"Lyra","Status":"alive","Seat":-9000}]}}`), uint64(1))
	f.Add([]byte(`{"Registered":{"Session":"s1","Name":"Lyra","Seat":9223372036854775807}}`), uint64(2))
	f.Add([]byte(`{"Imported":{"ID":"agent-1","Document":{"Status":"hatching","Seat":0,"CreatedAt":"0001-01-01T00:00:00Z"}}}`), uint64(3))
	f.Add([]byte(`{"Imported":{"ID":"../../up","Document":{"Status":"alive","Name":"\u0000","Seat":8,"LastAliveAt":"9999-01-01T00:00:00Z"}}}`), uint64(4))
	f.Add([]byte(`{"WakeAsked":{"Docs":["agent-1","agent-1","",""]}}`+"\n"+`{"Spoke":{"Session":"s1","Text":"[Lyra]: \ud800"}}`), uint64(5))
	f.Add([]byte(`{"LeadBegan":{}}`+"\n"+`{"LeadEnded":{"Session":"s9"}}`+"\n"+`{"AskTold":{"N":18446744073709551615}}`), uint64(6))
	f.Add([]byte(`{"LeadConfigured":{"Agent":"julian","Size":-3,"StatusMax":-1,"HatchMax":-1}}`), uint64(7))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		w := newWorld(t, rand.New(rand.NewPCG(seed, 1)))
		for i, line := range strings.SplitN(string(data), "\n", 50) {
			if i%3 == 0 {
				w.happens(w.something())
			}
			if in := inputOf(line); in != nil {
				w.strange(in)
			}
		}
		for range 30 {
			w.now.At = w.now.At.Add(time.Minute)
			w.strange(TimerFired{})
		}
	})
}

// inputOf parses an input; nil: the line is none.
func inputOf(line string) Input {
	var any struct {
		LeadConfigured *LeadConfigured
		WakeAsked      *WakeAsked
		LeadBegan      *LeadBegan
		LeadEnded      *LeadEnded
		AskTold        *ActionReceived
		Reported       *Reported
		Registered     *Registered
		Spoke          *Spoke
		Faulty         *Faulty
		Imported       *Imported
	}
	if json.Unmarshal([]byte(line), &any) != nil {
		return nil
	}
	switch {
	case any.LeadConfigured != nil && any.LeadConfigured.HatchMax >= 0 && any.LeadConfigured.StatusMax >= 0:
		return *any.LeadConfigured
	case any.WakeAsked != nil:
		return *any.WakeAsked
	case any.LeadBegan != nil:
		return *any.LeadBegan
	case any.LeadEnded != nil:
		return *any.LeadEnded
	case any.AskTold != nil:
		return *any.AskTold
	case any.Reported != nil:
		return *any.Reported
	case any.Registered != nil:
		return *any.Registered
	case any.Spoke != nil:
		return *any.Spoke
	case any.Faulty != nil:
		return *any.Faulty
	case any.Imported != nil:
		return *any.Imported
	}
	return nil
}

// strange applies an input that no correct program sends. The result must be valid nevertheless;
// only the rules for the lead's session are not checked.
func (w *world) strange(in Input) {
	w.oracle.remember()
	changes, err := w.crew.Decide(in, w.now)
	if err != nil {
		return
	}
	for _, ch := range changes {
		w.crew.Apply(journaled(w.t, ch))
	}
	if err := w.oracle.documents(in, w.now); err != nil {
		w.t.Fatalf("%T %+v: %v", in, in, err)
	}
	if err := w.oracle.expired(in, w.now); err != nil {
		w.t.Fatalf("%T %+v: %v", in, in, err)
	}
	for _, n := range w.crew.Notices {
		if len(n.Text) > noticeBytesMax+len("…") || n.Text == "" {
			w.t.Fatalf("%T: a notice of %d bytes", in, len(n.Text))
		}
	}
	if l := &w.crew.Lead; len(w.crew.Notices) > noticesMax || len(l.Actions) > asksMax || len(w.crew.Docs) > docsMax {
		w.t.Fatalf("%T: over a limit: %d notices, %d actions", in, len(w.crew.Notices), len(l.Actions))
	}
	w.oracle.open, w.oracle.reported = w.crew.Lead.Session, w.crew.Lead.Heard() // whichever session it was
	for id, doc := range w.crew.Docs {
		w.oracle.named[id] = doc.Status == Alive
	}
}

// TestLimits checks the limits of documents, notices, one report, one notice, and the projections
// of a document.
func TestLimits(t *testing.T) {
	c := aCrew(t, 8)
	now := Now{At: machinetest.Noon}
	must(t, c, LeadBegan{Session: "s1", UUID: "u1"}, now)
	for i := range docsMax {
		must(t, c, Imported{ID: DocID(fmt.Sprint("old-", i)), Document: Document{Status: Expired, Identity: Identity{Seat: i % 4}}}, now)
	}
	if _, err := decide(t, c, Imported{ID: "more", Document: Document{Status: Unknown, Identity: Identity{Name: "Lyra"}}},
		now); err == nil || !strings.Contains(err.Error(), "1024") {
		t.Errorf("a document above the limit: %v", err)
	}
	if _, err := decide(t, c, SummonAsked{}, now); err == nil || !strings.Contains(err.Error(), "1024") {
		t.Errorf("a summon above the limit: %v", err)
	}
	must(t, c, Registered{Session: "s1", Identity: Identity{Name: "Lyra"}}, now)
	if n := c.Notices[len(c.Notices)-1]; n.Kind != NoticeRefused || !strings.Contains(n.Text, "1024") || len(c.Docs) != docsMax {
		t.Errorf("a registration above the limit: %+v", n)
	}
	must(t, c, Reported{Session: "s1", Agents: make([]Listed, listedMax+1)}, now)
	if n := c.Notices[len(c.Notices)-1]; n.Kind != NoticeFault || c.Lead.Heard() {
		t.Errorf("a report that is too long: %+v", n)
	}
	for range noticesMax + 5 {
		must(t, c, Faulty{Agent: "julian", Session: "s1", Marker: strings.Repeat("ä", noticeBytesMax), Fault: "it is too long"}, now)
	}
	if n := c.Notices[0].Text; len(c.Notices) != noticesMax || len(n) > noticeBytesMax+len("…") || !strings.HasSuffix(n, "ä…") {
		t.Errorf("%d notices, the first of %d bytes", len(c.Notices), len(n))
	}
	c = aCrew(t, 8)
	must(t, c, LeadBegan{Session: "s1", UUID: "u1"}, now)
	must(t, c, Registered{Session: "s1", Identity: Identity{Name: "Lyra"}}, now)
	for i := range 2 * sumsMax {
		now.At = machinetest.Noon.Add(time.Duration(i+1) * time.Second)
		must(t, c, Reported{Session: "s1", Agents: []Listed{{"Lyra", "alive", 0}}}, now)
	}
	doc := c.Docs["agent-1"]
	if len(doc.Sums) != sumsMax || !doc.Ours(rendered(doc)) || doc.Ours("somebody else's") {
		t.Errorf("%d identities of projections, the last %q", len(doc.Sums), doc.Sums[len(doc.Sums)-1])
	}
}

// TestByName checks that the refusal of an ambiguous name says what to do.
func TestByName(t *testing.T) {
	c := aCrew(t, 8)
	now := Now{At: machinetest.Noon}
	must(t, c, LeadBegan{Session: "s1", UUID: "u1"}, now)
	for seat, name := range []string{"Lyra", "Lyra", "Kael"} {
		must(t, c, Registered{Session: "s1", Identity: Identity{Name: name, Seat: seat}}, now)
	}
	must(t, c, Imported{ID: "Kael", Document: Document{Status: Expired, Identity: Identity{Name: "Orin", Seat: 7}}}, now)
	for name, want := range map[string]DocID{"agent-1": "agent-1", "agent-3": "agent-3", "Kael": "Kael"} {
		if doc, err := c.ByName(name); err != nil || doc.ID != want {
			t.Errorf("%s is %+v, %v", name, doc, err)
		}
	}
	if _, err := c.ByName("Lyra"); err == nil || !strings.Contains(err.Error(), "agent-1") || !strings.Contains(err.Error(), "agent-2") {
		t.Errorf("the refusal of an ambiguous name: %v", err)
	}
	for _, name := range []string{"", "Orin", "lyra"} {
		if doc, err := c.ByName(name); err == nil {
			t.Errorf("%q is %+v", name, doc)
		}
	}
}
