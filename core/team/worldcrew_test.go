package team

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// The crew of the world: people who summon, wake and put to sleep, a lead that reports in its
// session, other agents that report in theirs, and documents from elsewhere.

// TestRandomCrews plays teams with a lead together with all other events: control, steps and
// channels request its slot; it is held, limited, killed and reconfigured; and Fairlead is killed
// with it. To repeat a run: -run 'RandomCrews/seed=7$'
func TestRandomCrews(t *testing.T) {
	seeds := testsize.Pick[uint64](20, 60, 3000)
	if testsize.Race {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := newWorldOf(t, seed, crew.LeadConfigured{Agent: "ada", Size: 3})
			for i := range 200 {
				if w.rnd.IntN(3) == 0 {
					w.happen(byte(w.rnd.Uint32()), w.rnd.Uint64())
				} else {
					w.crewHappens(w.rnd.Uint64())
				}
				if i%50 == 49 {
					w.keepSnapshot()
				}
			}
			w.snapshot = nil // the whole journal must give the same team
			w.crash()
			w.settle()
			w.crewRests()
		})
	}
}

// FuzzCrews applies events that the fuzzer chooses.
func FuzzCrews(f *testing.F) {
	f.Add([]byte("\x00\x0c\x0c\x0c\x01\x0d\x0e\x0f"))
	f.Add([]byte("\x04\x01\x0c\x0c\x0a\x0c\x03\x05\x0c\x0c"))
	f.Add([]byte("\x0b\x00\x0b\x0c\x08\x09\x0c\x01\x0c\x05\x06"))
	f.Fuzz(func(t *testing.T, orders []byte) {
		if len(orders) > 300 {
			return
		}
		w := newWorldOf(t, uint64(len(orders)), crew.LeadConfigured{Agent: "ada", Size: 3})
		for _, what := range orders {
			w.crewHappens(uint64(what)%24 + w.rnd.Uint64()>>8/24*24)
		}
		w.snapshot = nil
		w.crash()
	})
}

// crewRecord records independently what the lead's session says.
type crewRecord struct {
	named map[crew.DocID]bool   // alive by the last report of the open session, to this daemon
	was   map[crew.DocID]string // the identity of each member, once it is known
	dead  map[crew.DocID]string
	uuids map[string]string // id of a lead session in documents → session
}

func newCrewBook() *crewRecord {
	return &crewRecord{
		named: map[crew.DocID]bool{}, was: map[crew.DocID]string{}, dead: map[crew.DocID]string{},
		uuids: map[string]string{},
	}
}

// forget drops the reports to the daemon before.
func (b *crewRecord) forget() {
	if b != nil {
		clear(b.named)
	}
}

var uuidOf = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// judge checks a change before it is applied.
func (b *crewRecord) judge(w *world, ch change.Change) {
	if b == nil {
		return
	}
	if s := change.As[Session](ch.Body); s.IsLead() {
		a := w.team.Agents[nameOf(ch.Entity)]
		if w.team.Crew.Lead.Agent == a.Name && (s.Phase == session.None || s.Phase == session.Running && a.Session.Phase == session.Open) {
			b.forget()
		}
		if other := b.uuids[s.UUID]; !uuidOf.MatchString(s.UUID) || other != "" && other != s.ID {
			w.t.Fatalf("%s has the id %q, and so has %q", s.ID, s.UUID, other)
		}
		b.uuids[s.UUID] = s.ID
		if ch.Trigger == "opened" && (a.Settings.Policy.Foreign || w.team.Crew.Lead.Agent != a.Name || len(w.team.Crew.Lead.Actions) == 0) {
			w.t.Fatalf("%s is opened as a lead without an action", s.ID)
		}
	}
	body := change.As[crew.Body](ch.Body)
	if body == nil || body.Doc == nil {
		return
	}
	id := crew.DocID(nameOf(ch.Entity))
	if was := w.team.Crew.Docs[id]; was != nil && was.Status == crew.Alive && body.Doc.Status != crew.Alive {
		delete(b.named, id)
	}
}

// check checks the invariants after every event.
func (b *crewRecord) check(w *world) {
	if b == nil {
		return
	}
	lead := &w.team.Crew.Lead
	a := w.team.Agents[lead.Agent]
	var s *Session
	if a != nil {
		s = a.Session
	}
	switch {
	case lead.Session != "" && (s == nil || s.ID != lead.Session || s.IsLead() && s.UUID != lead.UUID):
		w.t.Fatalf("the crew's lead session is %s, but %s has %+v", lead.Session, lead.Agent, s)
	case s.IsLead() && s.Phase == session.Running && lead.Session != s.ID && !w.starting:
		w.t.Fatalf("%s leads, but the crew has %q", s.ID, lead.Session)
	case len(lead.Actions) > 0 && !w.starting && !s.IsLead() && !w.team.Hold.On && !isIn(a.Queue, ForLead):
		w.t.Fatalf("the lead has the action %+v, but no session is requested for it", lead.Actions)
	case len(lead.Actions) > 0 && !w.starting && !s.IsLead() && w.team.LeadWaits(w.at) == "":
		w.t.Fatalf("the lead has the action %+v, which waits without a reason", lead.Actions)
	case w.team.Stopping && lead.InProgress() && !s.IsLead():
		w.t.Fatalf("Fairlead stops, but the action %s is pending", lead.Stage)
	}
	b.documents(w, s)
	if at := w.team.Crew.Deadline(); lead.InProgress() && at.IsZero() {
		w.t.Fatalf("%s is in progress without a deadline", lead.Stage)
	}
}

func (b *crewRecord) documents(w *world, s *Session) {
	on := map[int]crew.DocID{}
	for id := range b.was {
		if w.team.Crew.Docs[id] == nil {
			w.t.Fatalf("%s is lost", id)
		}
	}
	for id, doc := range w.team.Crew.Docs {
		who, is := fmt.Sprintf("%+v", doc.Identity), fmt.Sprintf("%s %+v", doc.Status, doc.Identity)
		switch {
		case doc.Status == crew.Alive &&
			(s == nil || s.Phase != session.Running || w.team.Crew.Lead.UUID != doc.LastSession || !b.named[id]):
			w.t.Fatalf("%s is alive in %s without a report (named: %v); open is %+v", id, doc.LastSession, b.named[id], s)
		case doc.Visible() && on[doc.Seat] != "" || doc.Seat == crew.LeadSeat || doc.Seat < 0 || doc.Seat > crew.SeatMax:
			w.t.Fatalf("%s and %q have the seat %d", id, on[doc.Seat], doc.Seat)
		case b.was[id] != "" && b.was[id] != who:
			w.t.Fatalf("%s changed from %s to %s", id, b.was[id], who)
		case b.dead[id] != "" && b.dead[id] != is:
			w.t.Fatalf("%s expired as %s and is now %s", id, b.dead[id], is)
		}
		if doc.Visible() {
			on[doc.Seat] = id
		}
		if doc.Name != "" {
			b.was[id] = who
		}
		if doc.Status == crew.Expired {
			b.dead[id] = is
		}
	}
}

// crewHappens applies one random event of a crew.
func (w *world) crewHappens(how uint64) {
	lead := &w.team.Crew.Lead
	switch how % 24 {
	case 0:
		w.say("", crew.SummonAsked{})
	case 1, 2:
		w.say("", crew.WakeAsked{})
	case 3:
		if how>>8%3 == 0 {
			w.say("", SleepAsked{})
		}
	case 4:
		w.imported(how >> 8)
	case 5, 6:
		w.crewTimer(how>>8%2 == 0)
	case 7:
		w.otherSessions(how >> 8)
	case 8:
		if p := w.procs[lead.Session]; p != nil && p.alive && how>>8%4 == 0 {
			w.ends(lead.Session, from(anyEnd, how>>16))
		}
	case 9:
		if how>>8%6 == 0 { // another fairlead.yaml
			w.conf.Lead.Agent = from([]string{"ada", "ada", "bob", "cleo", "ghost", ""}, how>>16)
			w.conf.Lead.Size = int(1 + how>>24%8)
			w.crash()
		}
	case 10:
		if how>>8%4 == 0 {
			w.crash()
		}
	case 11:
		w.say("", from([]any{HoldAsked{}, ReleaseAsked{}, ReleaseAsked{}}, how>>8))
	default:
		for range how >> 40 % 12 { // pending messages are delivered, so that an agent can speak
			w.work()
		}
		if a := w.team.Agents[lead.Agent]; a != nil && a.Session.IsLead() {
			if p := w.procs[a.Session.ID]; p != nil && p.alive && a.Session.Phase == session.Running &&
				IsLeadToken(a.Session.Delivery.Token) {
				w.leadSpeaks(p, a.Session, how>>16)
				return
			}
		}
		w.agentSpeaks(how >> 24)
	}
}

// leadSpeaks makes a lead say something in its session in answer to its last prompt.
func (w *world) leadSpeaks(p *proc, s *Session, how uint64) {
	members := &w.team.Crew
	if members.Lead.Session == s.ID {
		switch how % 8 {
		case 0:
			w.say("", crew.Spoke{Session: s.ID, Text: "[Lyra]: hello"})
		case 1, 2:
			w.lists(s.ID, how>>8)
		default:
			for _, doc := range members.InOrder() {
				if doc.Status == crew.Hatching && how>>doc.Seat%3 > 0 {
					w.registers(s.ID, crew.Identity{Name: fmt.Sprint("name", how>>16%4), Seat: doc.Seat, Soul: "I am."})
				}
			}
			if how>>8%3 == 0 {
				w.registers(s.ID, crew.Identity{Name: "Orin", Seat: int(how >> 16 % 9), Soul: "I am."})
			}
			w.lists(s.ID, how>>24)
		}
	}
	if p.offset += 10; w.sessionOf(p) != nil && w.sessionOf(p).ID == s.ID {
		w.say(p.agent, SessionReported{Session: s.ID, Offset: p.offset, Over: how>>32%3 > 0})
	}
}

func (w *world) registers(session string, who crew.Identity) {
	for id, doc := range w.team.Crew.Docs {
		if doc.Visible() && doc.Seat == who.Seat {
			w.crew.named[id] = true // if it is this one, or becomes it; otherwise this does not make it alive
		}
	}
	next := crew.DocID(fmt.Sprint("agent-", w.team.Crew.Made+1))
	for w.team.Crew.Docs[next] != nil {
		var n int
		_, _ = fmt.Sscanf(string(next), "agent-%d", &n)
		next = crew.DocID(fmt.Sprint("agent-", n+1))
	}
	w.crew.named[next] = true
	w.say("", crew.Registered{Session: session, Identity: who})
	if w.team.Crew.Docs[next] == nil {
		delete(w.crew.named, next)
	}
}

// lists reports some of the members.
func (w *world) lists(session string, how uint64) {
	in, named := crew.Reported{Session: session}, map[crew.DocID]bool{}
	for _, doc := range w.team.Crew.InOrder() {
		if doc.Visible() && how>>doc.Seat%4 > 0 {
			in.Agents = append(in.Agents, crew.Listed{Name: doc.Name, Status: "alive", Seat: doc.Seat})
			named[doc.ID] = true
		}
	}
	w.crew.named = named
	w.say("", in)
}

// otherSessions sends reports that must not count: from other sessions, and from none.
func (w *world) otherSessions(how uint64) {
	before := w.encode(w.team.Crew.Docs)
	session := from([]string{"", "bob-1", "ada-0"}, how)
	if session == w.team.Crew.Lead.Session {
		session = "nobody"
	}
	in := from([]crew.Input{
		crew.Reported{Session: session},
		crew.Registered{Session: session, Identity: crew.Identity{Name: "Mallory", Seat: 7}},
		crew.Reported{Session: session, Agents: []crew.Listed{{Name: "Mallory", Status: "alive", Seat: 0}}},
		crew.Faulty{Agent: "bob", Session: session, Marker: "[AGENT_STATUS]"},
	}, how>>8)
	w.say("", in)
	if string(before) != string(w.encode(w.team.Crew.Docs)) {
		w.t.Fatalf("%+v, which does not count, changed a member", in)
	}
}

func (w *world) imported(how uint64) {
	doc := crew.Document{
		Status:    from([]crew.Status{crew.Alive, crew.Sleeping, crew.Hatching, crew.Expired, ""}, how),
		CreatedAt: w.at, LastSession: "elsewhere", Identity: crew.Identity{Name: fmt.Sprint("name", how>>8%4), Seat: int(how >> 16 % 9)},
	}
	if doc.Status == crew.Hatching {
		doc.Name = ""
	}
	w.say("", crew.Imported{
		ID: from([]crew.DocID{"lyra", "agent-2", "lead", "words", "agent-9", ""}, how>>24), Document: doc,
		From: "a file",
	})
}

// crewTimer advances the clock to the crew's deadline, or fires one that is not due.
func (w *world) crewTimer(due bool) {
	at := w.team.Crew.Deadline()
	if due && !at.IsZero() && at.After(w.at) {
		w.at = at
	}
	lines := len(w.journal)
	w.say("", crew.TimerFired{})
	if (at.IsZero() || at.After(w.at)) && len(w.journal) != lines {
		w.t.Fatalf("a timer of the crew that is not due (%s) had an effect", at)
	}
	if next := w.team.Crew.Deadline(); !next.IsZero() && !next.After(w.at) {
		w.t.Fatalf("the deadline %s of the crew in the past does not end", next)
	}
}

// crewRests checks that without further inputs every summon and every wake ends.
func (w *world) crewRests() {
	for range 20 {
		w.workOff()
		if w.team.Crew.Deadline().IsZero() {
			break
		}
		w.crewTimer(true)
	}
	hatches := func(doc *crew.Document) bool { return doc.Status == crew.Hatching }
	if lead := &w.team.Crew.Lead; lead.InProgress() || slices.ContainsFunc(w.team.Crew.InOrder(), hatches) {
		w.t.Fatalf("the crew does not become idle: %s", w.encode(w.team.Crew))
	}
	if a := w.team.Agents[w.team.Crew.Lead.Agent]; a != nil && a.Session.IsLead() && !w.procs[a.Session.ID].alive {
		w.t.Fatalf("%s leads, but its process has ended", a.Session.ID)
	}
}

// TestCrewsGetSomewhere checks that the random tests reach every row that only a lead in its
// session uses, because their invariants prove nothing otherwise.
func TestCrewsGetSomewhere(t *testing.T) {
	sum := map[string]int{}
	for seed := range uint64(20) {
		w := newWorldOf(t, seed, crew.LeadConfigured{Agent: "ada", Size: 3})
		w.rnd = rand.New(rand.NewPCG(seed, 9))
		for range 200 {
			w.crewHappens(w.rnd.Uint64())
		}
		for _, ch := range w.changes {
			if ch.Machine == "crew" {
				sum[ch.Row+" "+ch.Trigger]++
			}
			if s := change.As[Session](ch.Body); s.IsLead() && s.Outcome != control.Withdrawn {
				sum["lead "+ch.Trigger]++
			}
		}
	}
	for _, what := range []string{
		"P1 summoned", "P2 registered", "P3 lead_ended", "P4 listed", "P4 registered", "P5 not_listed", "P6 lead_unheard",
		"P7 hatching_too_long",
		"P8 woken", "P8 reported_asleep", "P10 registered", "P11 registered_other", "P13 imported_awake", "L3 lead_ended", "L6 fell_silent",
		"lead opened", "lead started", "lead adopted", "lead end_asked", "lead ended", "lead lost",
	} {
		if sum[what] == 0 {
			t.Errorf("none of twenty worlds reached %q", what)
		}
	}
	t.Logf("%v", sum)
}
