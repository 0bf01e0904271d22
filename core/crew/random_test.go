package crew

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestRandomOrders applies random inputs to crews: with a lead that reports correctly, one that
// does not, and people who press every button. To repeat a run: -run 'RandomOrders/seed=7$'
func TestRandomOrders(t *testing.T) {
	seeds := testsize.Pick[uint64](40, 120, 20000)
	if testsize.Race {
		seeds = 30
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := newWorld(t, rand.New(rand.NewPCG(seed, 0)))
			for i := range 250 {
				w.happens(w.something())
				if i%50 == 49 {
					w.replays()
				}
			}
			w.rests()
		})
	}
}

// world is a crew that receives random inputs.
type world struct {
	t        testing.TB
	rnd      *rand.Rand
	crew     *Crew
	oracle   *oracle
	now      Now
	sessions int
	good     bool // the lead reports correctly
	journal  []change.Change
}

func newWorld(t testing.TB, rnd *rand.Rand) *world {
	w := &world{t: t, rnd: rnd, crew: noLead(), now: Now{At: machinetest.Noon}, good: rnd.IntN(3) > 0}
	w.oracle = newOracle(t, w.crew)
	w.happens(LeadConfigured{Agent: "julian", Size: 1 + rnd.IntN(8)})
	return w
}

func (w *world) happens(in Input) {
	w.t.Helper()
	w.oracle.remember()
	if w.rnd.IntN(8) == 0 {
		answered(w.t, w.crew, in, w.now)
	}
	changes, err := decide(w.t, w.crew, in, w.now)
	if begins(in) && err == nil && (w.now.Held || w.now.Limit != "") {
		w.t.Fatalf("%[3]T is accepted while held %[1]v, limit %[2]q", w.now.Held, w.now.Limit, in) // X8, X9
	}
	if err != nil {
		return
	}
	for _, ch := range changes {
		ch = journaled(w.t, ch)
		w.journal = append(w.journal, ch)
		w.crew.Apply(ch)
	}
	w.oracle.check(in, w.now, changes)
}

// begins reports whether an input requests a summon or a wake.
func begins(in Input) bool {
	switch in.(type) {
	case SummonAsked, WakeAsked:
		return true
	}
	return false
}

// replays checks that the journal and a snapshot give the same crew, and continues with the
// replayed one.
func (w *world) replays() {
	same := func(what string, again *Crew) {
		if diff := cmp.Diff(w.crew, again, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Crew{}, "Render")); diff != "" {
			w.t.Fatalf("the %s gives another crew:\n%s", what, diff)
		}
	}
	again := noLead()
	for _, ch := range w.journal {
		again.Apply(ch)
	}
	same("journal", again)
	back := snapshot(w.t, w.crew)
	same("snapshot", back)
	w.crew, w.oracle.crew = back, back
}

// rests checks that a crew without further inputs becomes idle.
func (w *world) rests() {
	w.t.Helper()
	for range 100 {
		at := w.crew.Deadline()
		if at.IsZero() {
			if w.crew.Lead.InProgress() || slices.ContainsFunc(w.crew.InOrder(), func(d *Document) bool { return d.Status == Hatching }) {
				w.t.Fatalf("the crew is not idle, but has no deadline: %s", snapshotText(w.t, w.crew))
			}
			return
		}
		if at.After(w.now.At) {
			w.now.At = at
		}
		w.happens(TimerFired{})
	}
	w.t.Fatal("the crew does not become idle")
}

// something returns a random input.
func (w *world) something() Input {
	w.now.At = w.now.At.Add(time.Duration(w.rnd.IntN(8000)) * time.Millisecond)
	if w.rnd.IntN(60) == 0 {
		w.now.Held = !w.now.Held
	}
	if w.rnd.IntN(80) == 0 {
		w.now.Limit = []string{"", "", "cost per day 5 USD"}[w.rnd.IntN(3)]
	}
	switch n := w.rnd.IntN(100); {
	case n < 12:
		return w.person()
	case n < 20:
		return w.session()
	case n < 40:
		if l := &w.crew.Lead; len(l.Actions) > 0 && l.Session != "" {
			return ActionReceived{N: l.Actions[0].N}
		}
		return ActionReceived{N: w.crew.Lead.Number + 1} // an action that was never pending
	case n < 58:
		return w.report()
	case n < 72:
		return w.registers()
	case n < 80:
		return Spoke{Session: w.whose(), Text: []string{"", "words", "[Lyra]: hello\n[Kael]: hello"}[w.rnd.IntN(3)]}
	case n < 84:
		return Faulty{
			Agent: []string{"julian", "ada", ""}[w.rnd.IntN(3)], Session: w.whose(), Marker: "[AGENT_STATUS] {",
			Fault: []string{"", "unexpected end"}[w.rnd.IntN(2)],
		}
	case n < 90:
		return w.imports()
	case n < 97:
		return w.timer()
	case n < 98:
		return w.configures()
	default:
		return DaemonStarted{}
	}
}

func (w *world) configures() Input {
	in := LeadConfigured{
		Agent: w.crew.Lead.Agent, Size: 1 + w.rnd.IntN(8), StatusMax: time.Duration(10+w.rnd.IntN(50)) * time.Second,
		HatchMax: time.Duration(1+w.rnd.IntN(6)) * time.Minute,
	}
	if in.Agent == "" || w.rnd.IntN(4) == 0 {
		in.Agent = []string{"julian", "juliet", ""}[w.rnd.IntN(3)]
	}
	if in.Agent != w.crew.Lead.Agent && w.oracle.open != "" { // the previous lead lost its role
		w.oracle.takes(LeadEnded{Session: w.oracle.open})
	}
	return in
}

func (w *world) person() Input {
	if w.crew.Button() == SummonButton && w.rnd.IntN(4) > 0 || w.rnd.IntN(10) == 0 {
		return SummonAsked{}
	}
	var in WakeAsked
	for range w.rnd.IntN(3) {
		in.Docs = append(in.Docs, w.anybody())
	}
	return in
}

func (w *world) anybody() DocID {
	docs := w.crew.InOrder()
	if len(docs) == 0 || w.rnd.IntN(20) == 0 {
		return "nobody"
	}
	return docs[w.rnd.IntN(len(docs))].ID
}

func (w *world) session() Input {
	open := w.crew.Lead.Session
	switch n := w.rnd.IntN(10); {
	case w.crew.Lead.Agent == "":
		return TimerFired{}
	case open == "" && n < 8:
		w.sessions++
		return LeadBegan{Session: fmt.Sprint("s", w.sessions), UUID: fmt.Sprint("u", w.sessions)}
	case open == "":
		return LeadEnded{Why: "no such program"}
	case n < 3:
		return LeadBegan{Session: open, UUID: w.crew.Lead.UUID, Adopted: n > 0}
	case n < 5:
		return LeadEnded{Session: "s0"}
	default:
		return LeadEnded{Session: open, Why: "it went"}
	}
}

// whose returns a session, mostly the lead's.
func (w *world) whose() string {
	if w.rnd.IntN(5) > 0 {
		return w.crew.Lead.Session
	}
	return []string{"", "s0", "somebody"}[w.rnd.IntN(3)]
}

var someNames = []string{"Lyra", "Kael", "Vesper", "Orin", "Mira"}

func (w *world) report() Input {
	in := Reported{Session: w.whose()}
	for _, doc := range w.crew.InOrder() {
		if doc.Visible() && w.rnd.IntN(4) > 0 {
			in.Agents = append(in.Agents, Listed{Name: doc.Name, Status: "alive", Seat: doc.Seat})
		}
	}
	if w.good {
		return in
	}
	for i := range in.Agents {
		line := &in.Agents[i]
		switch w.rnd.IntN(8) {
		case 0:
			line.Seat = w.rnd.IntN(11) - 1
		case 1:
			line.Seat = NoSeat
		case 2:
			line.Name = someNames[w.rnd.IntN(len(someNames))]
		case 3:
			line.Status = []string{"sleeping", "", "Alive"}[w.rnd.IntN(3)]
		case 4:
			line.Name = ""
		}
	}
	if w.rnd.IntN(10) == 0 {
		in.Agents = slices.Repeat([]Listed{{Name: "Lyra", Status: "alive", Seat: 0}}, listedMax+w.rnd.IntN(2))
	}
	return in
}

func (w *world) registers() Input {
	in := Registered{
		Session: w.whose(),
		Identity: Identity{
			Name: someNames[w.rnd.IntN(len(someNames))], Seat: w.rnd.IntN(9), Color: "#abc",
			Soul: fmt.Sprint("soul ", w.rnd.IntN(100)),
		},
	}
	for _, doc := range w.crew.InOrder() {
		if doc.Status == Hatching && w.rnd.IntN(3) == 0 {
			in.Seat = doc.Seat
		}
	}
	if !w.good && w.rnd.IntN(5) == 0 {
		in.Seat, in.Name = w.rnd.IntN(13)-2, []string{"", " ", "Lyra"}[w.rnd.IntN(3)]
	}
	return in
}

func (w *world) imports() Input {
	in := Imported{
		ID:   DocID([]string{"agent-1", "agent-2", "agent-9", "lyra", "lead", "../up", ""}[w.rnd.IntN(7)]),
		Bare: w.rnd.IntN(4) == 0,
	}
	in.Document = Document{
		Status:      []Status{Alive, Sleeping, Unknown, Hatching, Expired, "", "odd"}[w.rnd.IntN(7)],
		Identity:    Identity{Name: append(someNames, "")[w.rnd.IntN(6)], Seat: w.rnd.IntN(11) - 1},
		LastSession: []string{"", "elsewhere", w.crew.Lead.UUID}[w.rnd.IntN(3)],
		Extra:       []json.RawMessage{nil, json.RawMessage(`{"mood":"blue"}`), json.RawMessage(`{"mood":"red"}`)}[w.rnd.IntN(3)],
	}
	for _, at := range []*time.Time{&in.Document.CreatedAt, &in.Document.LastAliveAt} {
		if w.rnd.IntN(3) > 0 {
			*at = w.now.At.Add(time.Duration(w.rnd.IntN(600)-300) * time.Second)
		}
	}
	return in
}

// timer passes a deadline in time, early or late.
func (w *world) timer() Input {
	if at := w.crew.Deadline(); at.After(w.now.At) && w.rnd.IntN(3) > 0 {
		w.now.At = at
	}
	return TimerFired{}
}

func TestDeadlineOfAnIdleCrew(t *testing.T) {
	if at := noLead().Deadline(); !at.IsZero() {
		t.Errorf("an idle crew has the deadline %s", at)
	}
	c := aCrew(t, 8)
	must(t, c, SummonAsked{}, Now{At: machinetest.Noon})
	if got, want := c.Deadline(), machinetest.Noon.Add(HatchMax); !got.Equal(want) {
		t.Errorf("the placeholders expire at %s, want %s", want, got)
	}
}

// long reports whether the long form of the tests runs.
func long() bool { return testsize.Long() }
