package team

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/table"
)

// led returns a team of ada and bob. ada leads; both are in the channel reviews.
func led(t *testing.T, limits Limits, of func(*Configured)) *crewWorld {
	c := newCrew(t, limits, two())
	c.must("", ledBy("ada", limits, of))
	for _, name := range []channel.AgentID{"ada", "bob"} {
		c.must("", channel.AgentConnected{Agent: name})
	}
	return c
}

func ledBy(lead string, limits Limits, of func(*Configured)) Configured {
	conf := circleOf("ada", "bob")
	conf.Limits, conf.Lead = limits, crew.LeadConfigured{Agent: lead, Size: 2}
	if of != nil {
		of(&conf)
	}
	return conf
}

// summoned returns such a team with two awake members, in a lead session without a pending prompt.
func summoned(t *testing.T) *crewWorld {
	c := led(t, Limits{}, nil)
	c.must("", crew.SummonAsked{})
	c.starts("ada")
	c.registers("Lyra", 0)
	c.registers("Kael", 1)
	c.reports(0, 1)
	c.over("ada")
	return c
}

func (c *crewWorld) registers(name string, seat int) []change.Change {
	c.t.Helper()
	return c.must("", crew.Registered{Session: c.Crew.Lead.Session, Identity: crew.Identity{Name: name, Seat: seat, Soul: "I am " + name}})
}

// reports is the lead's list of alive members, by seat.
func (c *crewWorld) reports(seats ...int) []change.Change {
	c.t.Helper()
	in := crew.Reported{Session: c.Crew.Lead.Session}
	for _, doc := range c.Crew.InOrder() {
		if doc.Visible() && slices.Contains(seats, doc.Seat) {
			in.Agents = append(in.Agents, crew.Listed{Name: doc.Name, Status: "alive", Seat: doc.Seat})
		}
	}
	return c.must("", in)
}

func (c *crewWorld) present(want string) {
	c.t.Helper()
	var is []string
	for _, doc := range c.Crew.InOrder() {
		if doc.Visible() {
			is = append(is, strings.TrimSpace(doc.Name+" "+string(doc.Status)))
		}
	}
	if got := strings.Join(is, ", "); got != want {
		c.t.Errorf("members: %s; want %s", got, want)
	}
}

func refusedBy(t *testing.T, c *crewWorld, agent string, what any, row, words string) {
	t.Helper()
	_, err := c.try(agent, what)
	var refusal *table.Refusal
	if !errors.As(err, &refusal) || refusal.Row != row || !strings.Contains(refusal.Error(), words) {
		t.Errorf("%T is answered with %v; want a refusal by %s that says %q", what, err, row, words)
	}
}

// P1, P2, P4: a summon opens a session of the lead, which stays.
func TestSummonOpensTheLeadsSession(t *testing.T) {
	c := led(t, Limits{}, nil)
	c.must("", crew.SummonAsked{})
	s := c.Agents["ada"].Session
	if !s.IsLead() || !s.ServesChannels() || s.Kind != control.Lead || s.Delivery.Key != "tell_summon//ada/1" || s.Delivery.Confirmed ||
		!uuidOf.MatchString(s.UUID) {
		t.Fatalf("ada's session is %+v, %+v", s, s.Delivery)
	}
	c.present("hatching, hatching")
	if c.Crew.Lead.Session != "" {
		t.Error("it leads before its process was seen")
	}
	c.starts("ada")
	if l := c.Crew.Lead; l.Session != s.ID || l.UUID != s.UUID || len(l.Actions) != 0 || l.Ends.IsZero() {
		t.Errorf("after the start of the process, the crew has %+v", l)
	}
	c.registers("Lyra", 0)
	c.registers("Kael", 1)
	c.reports(0, 1)
	c.present("Lyra alive, Kael alive")
	if doc := c.Crew.Docs["agent-1"]; doc.LastSession != s.UUID {
		t.Errorf("Lyra was last alive in %q, want %s", doc.LastSession, s.UUID)
	}
	c.over("ada")
	if s := c.Agents["ada"].Session; s == nil || s.Ending != "" {
		t.Errorf("after its answer the session is %+v", s)
	}
	c.at = c.at.Add(time.Hour)
	c.must("ada", TimerFired{})
	if s := c.Agents["ada"].Session; s == nil || s.Ending != "" {
		t.Errorf("after an idle hour the session is %+v", s)
	}
	c.ends("ada", control.OK)
	c.present("Lyra sleeping, Kael sleeping")
}

// J1: the lead queues for its slot behind the session that has it, and others queue behind the
// lead.
func TestLeadWaitsInTheQueue(t *testing.T) {
	c := led(t, Limits{}, nil)
	c.wants("ada", "run_once")
	c.starts("ada")
	c.must("", crew.SummonAsked{})
	if queue := c.Agents["ada"].Queue; len(queue) != 1 || queue[0].For != ForLead || queue[0].Kind != control.Lead {
		t.Fatalf("the queue is %+v", queue)
	}
	if why := c.LeadWaits(c.at); why != "it waits in the queue behind control (ada-1)" {
		t.Errorf("the lead waits: %q", why)
	}
	c.ends("ada", control.OK)
	if s := c.Agents["ada"].Session; !s.IsLead() || len(c.Agents["ada"].Queue) != 0 {
		t.Fatalf("the slot has %+v", s)
	}
	if why := c.LeadWaits(c.at); why != "" {
		t.Errorf("the lead has its session, but waits: %q", why)
	}
	c.starts("ada")
	c.wants("ada", "run_once")
	if why := c.ControlWaits("ada"); why != "it waits in the queue behind lead (ada-2)" {
		t.Errorf("control waits: %q", why)
	}
	c.reports()
	c.over("ada")
	if s := c.Agents["ada"].Session; !s.IsLead() || s.Ending != "" {
		t.Errorf("a request is queued, but the lead's session is %+v", s)
	}
	c.must("", SleepAsked{})
	c.ends("ada", control.OK)
	if s := c.Agents["ada"].Session; s == nil || s.For != ForControl {
		t.Errorf("the lead's session has ended, but the slot has %+v", s)
	}
}

// TestLeadSessionServesChannels checks that the lead receives the prompts of its channels in the
// same session, in this order: orders to stop, then the crew, then people, then its turns.
func TestLeadSessionServesChannels(t *testing.T) {
	c := summoned(t)
	id := c.session("ada")
	c.human("is it good?", "")
	actions := c.AgentChannelActions("ada", c.at)
	if len(actions) != 1 || actions[0].Do != channel.TellTurn || IsLeadToken(actions[0].Token) {
		t.Fatalf("ada's pending actions are %+v", actions)
	}
	c.reports(0)
	c.must("", crew.WakeAsked{})
	actions = c.AgentChannelActions("ada", c.at)
	if len(actions) != 2 || actions[0].Key != "tell_wake//ada/2" || !IsLeadToken(actions[0].Token) || actions[1].Do != channel.TellTurn {
		t.Fatalf("ada's pending actions are %+v", actions)
	}
	ask, ok := c.LeadAction(actions[0])
	if !ok || ask.Do != crew.TellWake || !slices.Equal(ask.Docs, []crew.DocID{"agent-2"}) {
		t.Errorf("the action is %+v, %v", ask, ok)
	}
	if _, ok := c.LeadAction(actions[1]); ok {
		t.Error("a turn counts as an action of the crew")
	}
	if back, ok := ActionOf(actions[0].Key); !ok || !reflect.DeepEqual(back, actions[0]) {
		t.Errorf("its key is parsed as %+v", back)
	}
	c.writeAction("ada")
	if delivery := c.Agents["ada"].Session.Delivery; delivery.Key != actions[0].Key || !delivery.Confirmed || c.Crew.Lead.Ends.IsZero() {
		t.Errorf("after the delivery it has %+v; %+v", delivery, c.Crew.Lead)
	}
	if _, ok := c.LeadAction(actions[0]); ok {
		t.Error("the action was delivered but is still pending")
	}
	c.reports(0, 1)
	c.over("ada")
	c.writeAction("ada")
	c.said("ada", "it is", true)
	c.over("ada")
	c.stands("ada QUEUED, bob ACTIVE")
	if c.session("ada") != id || c.Agents["ada"].Session.Ending != "" {
		t.Errorf("ada has another session: %+v", c.Agents["ada"].Session)
	}
	if actions := c.AgentChannelActions("bob", c.at); len(actions) != 1 || IsLeadToken(actions[0].Token) {
		t.Errorf("bob does not lead, but has the action %+v", actions)
	}
	c.must("", crew.Reported{Session: id})
	c.must("", crew.WakeAsked{})
	c.human("stop", channel.Interrupt)
	if actions := c.AgentChannelActions("ada", c.at); len(actions) == 0 || !IsLeadToken(actions[0].Token) {
		t.Errorf("a person's action is before one of the crew: %+v", actions)
	}
	c.ends("ada", control.Failed)
	c.present("Lyra unknown, Kael unknown")
	if n := c.Crew.Notices[len(c.Crew.Notices)-1]; n.Kind != crew.NoticeLead {
		t.Errorf("its session ended during a wake; the notices are %+v", n)
	}
}

// TestSessionForChannelsDoesNotLead checks that an action of the crew that arrives while the lead
// works in a session for channels gets its own session. The markers of the session for channels
// count until it ends (SPEC, corrections, "presence").
func TestSessionForChannelsDoesNotLead(t *testing.T) {
	c := led(t, Limits{}, nil)
	c.human("is it good?", "")
	c.starts("ada")
	c.must("", crew.SummonAsked{})
	if s := c.Agents["ada"].Session; s.IsLead() || len(c.AgentChannelActions("ada", c.at)) != 0 {
		t.Fatalf("ada has the action %+v in %+v", c.AgentChannelActions("ada", c.at), s)
	}
	if why := c.LeadWaits(c.at); !strings.Contains(why, "channels (ada-1)") {
		t.Errorf("the lead waits: %q", why)
	}
	c.must("", crew.Registered{Session: "ada-0", Identity: crew.Identity{Name: "Mallory", Seat: 1}})
	c.must("", crew.Registered{Session: "ada-1", Identity: crew.Identity{Name: "Lyra", Seat: 0}})
	c.present("Lyra alive, hatching")
	if lead := c.Crew.Lead; lead.Session != "ada-1" || len(c.Crew.Notices) != 1 || c.Crew.Notices[0].Kind != crew.NoticeIgnored {
		t.Errorf("markers count in %q, with %+v", lead.Session, c.Crew.Notices)
	}
	c.said("ada", "it is", true)
	c.over("ada")
	if s := c.Agents["ada"].Session; s.Ending == "" {
		t.Fatalf("it has answered and the lead waits, but it does not end: %+v", s)
	}
	c.ends("ada", control.OK)
	c.present("Lyra sleeping, hatching")
	if s := c.Agents["ada"].Session; !s.IsLead() || s.Delivery.Do != channel.ActionKind(crew.TellSummon) {
		t.Errorf("then ada has %+v", s)
	}
}

// P3: a person puts the crew to sleep, regardless of what its lead does.
func TestSleep(t *testing.T) {
	c := summoned(t)
	c.must("", SleepAsked{})
	if s := c.Agents["ada"].Session; !strings.HasPrefix(s.Ending, "put to sleep by ") {
		t.Fatalf("ada's session is %+v", s)
	}
	c.present("Lyra alive, Kael alive")
	if changes := c.must("", SleepAsked{}); len(changes) != 0 {
		t.Errorf("a second order returns %+v", changes)
	}
	refusedBy(t, c, "", crew.WakeAsked{}, "P8", "try again when it has ended") // it would be lost with the session
	c.ends("ada", control.OK)
	c.present("Lyra sleeping, Kael sleeping")
	if c.Agents["ada"].Session != nil {
		t.Errorf("the crew sleeps, but the slot has %+v", c.Agents["ada"].Session)
	}

	c.must("", crew.WakeAsked{}) // opened, and not started yet
	c.must("", SleepAsked{})
	if l := c.Crew.Lead; l.InProgress() || len(l.Actions) != 0 {
		t.Errorf("the crew was put to sleep, but pending is %+v", l.Actions)
	}
	c.ends("ada", control.Withdrawn)
	if c.Agents["ada"].Session != nil {
		t.Errorf("the crew sleeps, but the slot has %+v", c.Agents["ada"].Session)
	}

	c.wants("ada", "run_once") // queued
	c.starts("ada")
	c.must("", crew.WakeAsked{})
	c.must("", SleepAsked{})
	if a := c.Agents["ada"]; len(a.Queue) != 0 || a.Session.Ending != "" || c.Crew.Lead.InProgress() {
		t.Errorf("the crew was put to sleep, but the queue is %+v and the slot has %+v", a.Queue, a.Session)
	}
	refusedBy(t, newCrew(t, Limits{}, two()), "", SleepAsked{}, "P3", "the team has no lead")
}

// P6: a lead that outlived a daemon is asked for its status at once, and no member counts as awake
// before.
func TestLeadOutlivesTheDaemon(t *testing.T) {
	c := summoned(t)
	s := *c.Agents["ada"].Session
	c.must("", DaemonStarted{BootID: "boot"})
	c.present("Lyra unknown, Kael unknown")
	c.must("", ledBy("ada", Limits{}, nil))
	c.must("ada", SessionAdopted{Session: s.ID, PID: 1, Input: s.Delivery.Input})
	actions := c.AgentChannelActions("ada", c.at)
	if len(actions) != 1 || actions[0].Do != channel.ActionKind(crew.TellStatus) {
		t.Fatalf("ada's pending actions are %+v", actions)
	}
	c.writeAction("ada")
	c.reports(0, 1)
	c.present("Lyra alive, Kael alive")
	if is := c.Agents["ada"].Session; is.UUID != s.UUID || c.Crew.Docs["agent-1"].LastSession != s.UUID {
		t.Errorf("it was %s and is now %s", s.UUID, is.UUID)
	}
	c.must("", DaemonStarted{BootID: "boot"})
	c.must("ada", SessionEnded{Session: s.ID, Outcome: control.Lost, Why: "nothing is left of it", AtStart: true})
	c.present("Lyra unknown, Kael unknown")
	if c.Crew.Lead.Session != "" {
		t.Errorf("its session is lost, but the crew has %q", c.Crew.Lead.Session)
	}
}

// X8, X9, and agents that cannot lead.
func TestAgentsThatCannotLead(t *testing.T) {
	c := led(t, Limits{}, nil)
	c.must("", HoldAsked{})
	refusedBy(t, c, "", crew.SummonAsked{}, "X8", "held")
	refusedBy(t, c, "", crew.WakeAsked{}, "X8", "held")
	c.must("", ReleaseAsked{})
	c.must("", channel.DisableAsked{Agent: "ada"})
	refusedBy(t, c, "", crew.SummonAsked{}, "P1", "enable it first")
	c.must("", channel.EnableAsked{Agent: "ada"})
	refusedBy(t, c, "", crew.WakeAsked{}, "P8", "the crew was never summoned")
	refusedBy(t, newCrew(t, Limits{}, two()), "", crew.SummonAsked{}, "P1", "the team has no lead")

	foreign := led(t, Limits{}, func(conf *Configured) {
		settings := quiet
		settings.Policy.Foreign = true
		conf.Agents["ada"] = settings
	})
	refusedBy(t, foreign, "", crew.SummonAsked{}, "P1", "its own loop")
	ghost := led(t, Limits{}, nil)
	ghost.must("", ledBy("ghost", Limits{}, nil))
	refusedBy(t, ghost, "", crew.SummonAsked{}, "P1", "not an agent of fairlead.yaml")

	c = summoned(t)
	c.must("", ledBy("ada", Limits{CostPerDayUSD: 1}, nil))
	s := c.Agents["ada"].Session
	c.must("ada", SessionReported{Session: s.ID, Offset: s.Offset + 10, Usage: change.Usage{CostUSD: 2}})
	if s := c.Agents["ada"].Session; !strings.Contains(s.Ending, "limit reached") {
		t.Errorf("the daily limit is used up, but the lead's session is %+v", s)
	}
	c.ends("ada", control.OK)
	c.present("Lyra sleeping, Kael sleeping")
	refusedBy(t, c, "", crew.WakeAsked{}, "X9", "limit reached")
}

// TestHoldKeepsTheLeadsPlace checks that a hold lets the current session finish and keeps the
// lead's place in the queue.
func TestHoldKeepsTheLeadsPlace(t *testing.T) {
	c := led(t, Limits{}, nil)
	c.wants("ada", "run_once")
	c.starts("ada")
	c.must("", crew.SummonAsked{})
	c.must("", HoldAsked{})
	c.ends("ada", control.OK)
	if a := c.Agents["ada"]; a.Session != nil || len(a.Queue) != 1 {
		t.Fatalf("during the hold the slot has %+v and the queue is %+v", a.Session, a.Queue)
	}
	if why := c.LeadWaits(c.at); !strings.Contains(why, "held") {
		t.Errorf("the lead waits: %q", why)
	}
	c.must("", ReleaseAsked{})
	if s := c.Agents["ada"].Session; !s.IsLead() {
		t.Errorf("after the release the slot has %+v", s)
	}

	c.must("", HoldAsked{}) // opened and not started: it is withdrawn, and begins after the hold
	c.ends("ada", control.Withdrawn)
	if l := c.Crew.Lead; !l.InProgress() || len(l.Actions) != 1 {
		t.Errorf("after the withdrawal the summon is %+v", l)
	}
	c.must("", ReleaseAsked{})
	c.starts("ada")
	if l := c.Crew.Lead; l.Session == "" || len(l.Actions) != 0 {
		t.Errorf("after the start the summon is %+v", l)
	}
}

// TestLeadCannotStart checks that a lead that cannot be started is reported, and that the start is
// not repeated endlessly.
func TestLeadCannotStart(t *testing.T) {
	c := led(t, Limits{}, nil)
	c.must("", crew.SummonAsked{})
	c.must("ada", SessionEnded{Session: c.session("ada"), Outcome: control.CannotStart, Why: "no such program"})
	if l := c.Crew.Lead; l.InProgress() || len(l.Actions) != 0 || c.Agents["ada"].Session != nil {
		t.Errorf("it cannot be started, but has the action %+v", l)
	}
	if n := c.Crew.Notices[0]; n.Kind != crew.NoticeLead || !strings.Contains(n.Text, "ada did not start") ||
		!strings.Contains(n.Text, "no such program") {
		t.Errorf("the notices are %+v", n)
	}
}

// TestAnotherLeads checks that a lead that was replaced is asked to end, and that its reports do
// not count.
func TestAnotherLeads(t *testing.T) {
	c := summoned(t)
	id := c.session("ada")
	c.must("", DaemonStarted{BootID: "boot"})
	c.must("", ledBy("bob", Limits{}, nil))
	c.must("ada", SessionAdopted{Session: id, PID: 1})
	if s := c.Agents["ada"].Session; s.Ending == "" {
		t.Errorf("bob leads, but ada's session is %+v", s)
	}
	c.present("Lyra unknown, Kael unknown")
	c.must("", crew.Reported{Session: id, Agents: []crew.Listed{{Name: "Lyra", Status: "alive", Seat: 0}}})
	c.present("Lyra unknown, Kael unknown")
	c.must("", crew.WakeAsked{})
	if s := c.Agents["bob"].Session; !s.IsLead() {
		t.Errorf("bob's session is %+v", s)
	}
	c.starts("bob")
	c.ends("ada", control.OK)
	c.reports(0)
	c.present("Lyra alive, Kael unknown")
}

// TestLeadSessionIDsAreUnique checks that the id of a lead session in documents differs for another
// boot, another start, and another session of the same number, and that the journal gives the same
// id.
func TestLeadSessionIDsAreUnique(t *testing.T) {
	names := map[string]bool{}
	for _, boot := range []string{"boot", "another"} {
		for range 2 {
			c := led(t, Limits{}, nil)
			c.must("", DaemonStarted{BootID: boot})
			c.must("", crew.SummonAsked{})
			c.starts("ada")
			names[c.Crew.Lead.UUID] = true
			c.ends("ada", control.OK)
			c.must("", crew.Registered{Session: "late"})
			c.at = c.at.Add(10 * time.Minute)
			c.must("", crew.TimerFired{})
			c.must("", crew.SummonAsked{})
			c.starts("ada")
			names[c.Crew.Lead.UUID] = true
			c.replays()
		}
	}
	if len(names) != 4 {
		t.Errorf("four sessions, each twice, have the ids %v", names)
	}
}

// replays checks that the crew rebuilt from the journal equals the live one.
func (c *crewWorld) replays() {
	c.t.Helper()
	again := New(identity)
	for _, ch := range c.journal {
		again.Apply(decoded(c.t, encoded(c.t, ch)))
	}
	live, _ := json.Marshal(c.Crew)
	replayed, _ := json.Marshal(again.Crew)
	if string(live) != string(replayed) {
		c.t.Errorf("the replayed crew differs:\n%s\n%s", live, replayed)
	}
}

// TestDocumentsWithReservedNames checks that files may have any name, also that of another entity
// beside the documents.
func TestDocumentsWithReservedNames(t *testing.T) {
	c := led(t, Limits{}, nil)
	for i, id := range []crew.DocID{"agent-1", "lead", "words", "a.b"} {
		c.must("", crew.Imported{
			ID:       id,
			Document: crew.Document{Status: crew.Sleeping, Identity: crew.Identity{Name: string(id), Seat: i}},
		})
	}
	c.present("agent-1 sleeping, lead sleeping, words sleeping, a.b sleeping")
	c.replays()
	c.must("", crew.WakeAsked{})
	c.starts("ada")
	c.reports(0, 1, 2, 3)
	c.present("agent-1 alive, lead alive, words alive, a.b alive")
	c.replays()
}

// TestMemberOf checks that people can name a member by its id or its name.
func TestMemberOf(t *testing.T) {
	c := summoned(t)
	c.registers("Lyra", 2)
	for name, want := range map[string]crew.DocID{"Kael": "agent-2", "agent-3": "agent-3"} {
		if doc, err := c.FindDocument(name); err != nil || doc.ID != want {
			t.Errorf("%s is %+v, %v", name, doc, err)
		}
	}
	if _, err := c.FindDocument("Lyra"); err == nil || !strings.Contains(err.Error(), "agent-1") ||
		!strings.Contains(err.Error(), "agent-3") {
		t.Errorf("the refusal of an ambiguous name: %v", err)
	}
	_, err := c.FindDocument("Nadir")
	var unknown *Unknown
	if !errors.As(err, &unknown) || unknown.What != "agent of the team" || !slices.Contains(unknown.Known, "Kael") {
		t.Errorf("the refusal of an unknown name: %v", err)
	}
}
