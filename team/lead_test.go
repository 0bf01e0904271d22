package team

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/crew"
)

// led is a team of ada and bob, whom ada leads; both are in the channel reviews.
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

// summoned is one whose two agents are awake, in a lead session that has nothing to answer.
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

func (c *crewWorld) registers(name string, seat int) []Change {
	c.t.Helper()
	return c.must("", crew.Registered{Session: c.Crew.Lead.Session, Identity: crew.Identity{Name: name, Seat: seat, Soul: "I am " + name}})
}

// reports is the lead's list of who is alive, by seat.
func (c *crewWorld) reports(seats ...int) []Change {
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
		c.t.Errorf("there are %s; want %s", got, want)
	}
}

func refusedBy(t *testing.T, c *crewWorld, agent string, what any, row, words string) {
	t.Helper()
	_, err := c.try(agent, what)
	var refusal *machine.Refusal
	if !errors.As(err, &refusal) || refusal.Row != row || !strings.Contains(refusal.Error(), words) {
		t.Errorf("%T is answered with %v; want a refusal by %s that says %q", what, err, row, words)
	}
}

// P1, P2, P4: a summon opens a session of the lead's for it, which stays.
func TestSummonOpensTheLeadsSession(t *testing.T) {
	c := led(t, Limits{}, nil)
	c.must("", crew.SummonAsked{})
	s := c.Agents["ada"].Session
	if !s.IsLead() || !s.ServesChannels() || s.Kind != control.Lead || s.Delivery.Key != "tell_summon//ada/1" || s.Delivery.Told || !uuidOf.MatchString(s.UUID) {
		t.Fatalf("ada's session is %+v, %+v", s, s.Delivery)
	}
	c.present("hatching, hatching")
	if c.Crew.Lead.Session != "" {
		t.Error("nobody has seen its process, and it leads")
	}
	c.starts("ada")
	if l := c.Crew.Lead; l.Session != s.ID || l.UUID != s.UUID || len(l.Actions) != 0 || l.Ends.IsZero() {
		t.Errorf("the process runs, and was told; the crew has %+v", l)
	}
	c.registers("Lyra", 0)
	c.registers("Kael", 1)
	c.reports(0, 1)
	c.present("Lyra alive, Kael alive")
	if doc := c.Crew.Docs["agent-1"]; doc.LastSession != s.UUID {
		t.Errorf("Lyra was last alive in %q, and not in %s", doc.LastSession, s.UUID)
	}
	c.over("ada")
	if s := c.Agents["ada"].Session; s == nil || s.Ending != "" {
		t.Errorf("it has answered, and its session is %+v", s)
	}
	c.at = c.at.Add(time.Hour)
	c.must("ada", TimerFired{})
	if s := c.Agents["ada"].Session; s == nil || s.Ending != "" {
		t.Errorf("it rests for an hour, and its session is %+v", s)
	}
	c.ends("ada", control.OK)
	c.present("Lyra sleeping, Kael sleeping")
}

// J1: the lead queues for its slot behind the session that has it, and others queue behind the lead.
func TestLeadWaitsInLine(t *testing.T) {
	c := led(t, Limits{}, nil)
	c.wants("ada", "run_once")
	c.starts("ada")
	c.must("", crew.SummonAsked{})
	if queue := c.Agents["ada"].Queue; len(queue) != 1 || queue[0].For != ForLead || queue[0].Kind != control.Lead {
		t.Fatalf("in line are %+v", queue)
	}
	if why := c.LeadWaits(c.at); why != "it waits in the queue behind control (ada-1)" {
		t.Errorf("the lead waits: %q", why)
	}
	c.ends("ada", control.OK)
	if s := c.Agents["ada"].Session; !s.IsLead() || len(c.Agents["ada"].Queue) != 0 {
		t.Fatalf("the seat is free, and has %+v", s)
	}
	if why := c.LeadWaits(c.at); why != "" {
		t.Errorf("it has its session, and waits: %q", why)
	}
	c.starts("ada")
	c.wants("ada", "run_once")
	if why := c.ControlWaits("ada"); why != "it waits in the queue behind lead (ada-2)" {
		t.Errorf("control waits: %q", why)
	}
	c.reports()
	c.over("ada")
	if s := c.Agents["ada"].Session; !s.IsLead() || s.Ending != "" {
		t.Errorf("somebody waits behind it, and the lead's session is %+v", s)
	}
	c.must("", SleepAsked{})
	c.ends("ada", control.OK)
	if s := c.Agents["ada"].Session; s == nil || s.For != ForControl {
		t.Errorf("the lead is gone, and the seat has %+v", s)
	}
}

// What the lead is to be told in its channels it is told in the same session, between what it is
// to do for the team: what stops it first, then the team, then people, then its turns.
func TestLeadSessionServesChannels(t *testing.T) {
	c := summoned(t)
	id := c.session("ada")
	c.human("is it good?", "")
	actions := c.AgentChannelActions("ada", c.at)
	if len(actions) != 1 || actions[0].Do != channel.TellTurn || IsLeadToken(actions[0].Token) {
		t.Fatalf("ada is to be told %+v", actions)
	}
	c.reports(0)
	c.must("", crew.WakeAsked{})
	actions = c.AgentChannelActions("ada", c.at)
	if len(actions) != 2 || actions[0].Key != "tell_wake//ada/2" || !IsLeadToken(actions[0].Token) || actions[1].Do != channel.TellTurn {
		t.Fatalf("ada is to be told %+v", actions)
	}
	ask, ok := c.LeadAction(actions[0])
	if !ok || ask.Do != crew.TellWake || !slices.Equal(ask.Docs, []crew.DocID{"agent-2"}) {
		t.Errorf("that is to say %+v, %v", ask, ok)
	}
	if _, ok := c.LeadAction(actions[1]); ok {
		t.Error("a turn is something for the team")
	}
	if back, ok := ActionOf(actions[0].Key); !ok || !reflect.DeepEqual(back, actions[0]) {
		t.Errorf("its key gives %+v back", back)
	}
	c.hears("ada")
	if talk := c.Agents["ada"].Session.Delivery; talk.Key != actions[0].Key || !talk.Told || c.Crew.Lead.Ends.IsZero() {
		t.Errorf("it was told, and has %+v; %+v", talk, c.Crew.Lead)
	}
	if _, ok := c.LeadAction(actions[0]); ok {
		t.Error("it was told, and is yet to be told")
	}
	c.reports(0, 1)
	c.over("ada")
	c.hears("ada")
	c.said("ada", "it is", true)
	c.over("ada")
	c.stands("ada QUEUED, bob ACTIVE")
	if c.session("ada") != id || c.Agents["ada"].Session.Ending != "" {
		t.Errorf("ada has another session: %+v", c.Agents["ada"].Session)
	}
	if actions := c.AgentChannelActions("bob", c.at); len(actions) != 1 || IsLeadToken(actions[0].Token) {
		t.Errorf("bob, who does not lead, is to be told %+v", actions)
	}
	c.must("", crew.Reported{Session: id})
	c.must("", crew.WakeAsked{})
	c.human("stop", channel.Interrupt)
	if actions := c.AgentChannelActions("ada", c.at); len(actions) == 0 || !IsLeadToken(actions[0].Token) {
		t.Errorf("people come before the team: %+v", actions)
	}
	c.ends("ada", control.Failed)
	c.present("Lyra unknown, Kael unknown")
	if n := c.Crew.Notices[len(c.Crew.Notices)-1]; n.Kind != crew.NoticeLead {
		t.Errorf("it ended in the middle of a wake, and people see %+v", n)
	}
}

// What is told while the lead is at something else in a channel is told in a session of its own: one
// for channels is told nothing of the crew. Its markers count until it ends (SPEC, corrections, "presence").
func TestSessionForChannelsDoesNotLead(t *testing.T) {
	c := led(t, Limits{}, nil)
	c.human("is it good?", "")
	c.starts("ada")
	c.must("", crew.SummonAsked{})
	if s := c.Agents["ada"].Session; s.IsLead() || len(c.AgentChannelActions("ada", c.at)) != 0 {
		t.Fatalf("ada is to be told %+v in %+v", c.AgentChannelActions("ada", c.at), s)
	}
	if why := c.LeadWaits(c.at); !strings.Contains(why, "channels (ada-1)") {
		t.Errorf("the lead waits: %q", why)
	}
	c.must("", crew.Registered{Session: "ada-0", Identity: crew.Identity{Name: "Mallory", Seat: 1}})
	c.must("", crew.Registered{Session: "ada-1", Identity: crew.Identity{Name: "Lyra", Seat: 0}})
	c.present("Lyra alive, hatching")
	if lead := c.Crew.Lead; lead.Session != "ada-1" || len(c.Crew.Notices) != 1 || c.Crew.Notices[0].Kind != crew.NoticeIgnored {
		t.Errorf("the lead is heard in %q, with %+v", lead.Session, c.Crew.Notices)
	}
	c.said("ada", "it is", true)
	c.over("ada")
	if s := c.Agents["ada"].Session; s.Ending == "" {
		t.Fatalf("it has answered, the lead waits, and it stays: %+v", s)
	}
	c.ends("ada", control.OK)
	c.present("Lyra sleeping, hatching")
	if s := c.Agents["ada"].Session; !s.IsLead() || s.Delivery.Do != channel.ActionKind(crew.TellSummon) {
		t.Errorf("then ada has %+v", s)
	}
}

// P3: a person puts the team to sleep, whatever its lead is at.
func TestSleep(t *testing.T) {
	c := summoned(t)
	c.must("", SleepAsked{})
	if s := c.Agents["ada"].Session; !strings.HasPrefix(s.Ending, "put to sleep by ") {
		t.Fatalf("ada's session is %+v", s)
	}
	c.present("Lyra alive, Kael alive")
	if changes := c.must("", SleepAsked{}); len(changes) != 0 {
		t.Errorf("asked twice, it says %+v", changes)
	}
	refusedBy(t, c, "", crew.WakeAsked{}, "P8", "try again when it has ended") // it would be lost with the session
	c.ends("ada", control.OK)
	c.present("Lyra sleeping, Kael sleeping")
	if c.Agents["ada"].Session != nil {
		t.Errorf("it sleeps, and has %+v", c.Agents["ada"].Session)
	}

	c.must("", crew.WakeAsked{}) // opened, and not started yet
	c.must("", SleepAsked{})
	if l := c.Crew.Lead; l.InProgress() || len(l.Actions) != 0 {
		t.Errorf("it is to sleep, and to be told %+v", l.Actions)
	}
	c.ends("ada", control.Withdrawn)
	if c.Agents["ada"].Session != nil {
		t.Errorf("it sleeps, and has %+v", c.Agents["ada"].Session)
	}

	c.wants("ada", "run_once") // in line
	c.starts("ada")
	c.must("", crew.WakeAsked{})
	c.must("", SleepAsked{})
	if a := c.Agents["ada"]; len(a.Queue) != 0 || a.Session.Ending != "" || c.Crew.Lead.InProgress() {
		t.Errorf("it is to sleep, in line are %+v, and the seat has %+v", a.Queue, a.Session)
	}
	refusedBy(t, newCrew(t, Limits{}, two()), "", SleepAsked{}, "P3", "the team has no lead")
}

// P6: a lead that survived a daemon is asked for its status at once, and no member counts as awake
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
		t.Fatalf("ada is to be told %+v", actions)
	}
	c.hears("ada")
	c.reports(0, 1)
	c.present("Lyra alive, Kael alive")
	if is := c.Agents["ada"].Session; is.UUID != s.UUID || c.Crew.Docs["agent-1"].LastSession != s.UUID {
		t.Errorf("it was %s, and is %s", s.UUID, is.UUID)
	}
	c.must("", DaemonStarted{BootID: "boot"})
	c.must("ada", SessionEnded{Session: s.ID, Outcome: control.Lost, Why: "nothing is left of it", AtStart: true})
	c.present("Lyra unknown, Kael unknown")
	if c.Crew.Lead.Session != "" {
		t.Errorf("its session is lost, and the crew has %q", c.Crew.Lead.Session)
	}
}

// X8, X9, and a lead that is not what it should be.
func TestWhoCannotLead(t *testing.T) {
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
	c.must("ada", SessionReported{Session: s.ID, Offset: s.Offset + 10, Usage: Usage{CostUSD: 2}})
	if s := c.Agents["ada"].Session; !strings.Contains(s.Ending, "limit reached") {
		t.Errorf("the day is used up, and the lead's session is %+v", s)
	}
	c.ends("ada", control.OK)
	c.present("Lyra sleeping, Kael sleeping")
	refusedBy(t, c, "", crew.WakeAsked{}, "X9", "limit reached")
}

// A hold lets what is under way finish, and keeps the lead's place in the line.
func TestHoldKeepsTheLeadsPlace(t *testing.T) {
	c := led(t, Limits{}, nil)
	c.wants("ada", "run_once")
	c.starts("ada")
	c.must("", crew.SummonAsked{})
	c.must("", HoldAsked{})
	c.ends("ada", control.OK)
	if a := c.Agents["ada"]; a.Session != nil || len(a.Queue) != 1 {
		t.Fatalf("the team is held; the seat has %+v, and in line are %+v", a.Session, a.Queue)
	}
	if why := c.LeadWaits(c.at); !strings.Contains(why, "held") {
		t.Errorf("the lead waits: %q", why)
	}
	c.must("", ReleaseAsked{})
	if s := c.Agents["ada"].Session; !s.IsLead() {
		t.Errorf("it is released, and the seat has %+v", s)
	}

	c.must("", HoldAsked{}) // opened, and not started: it is withdrawn, and begins after the hold
	c.ends("ada", control.Withdrawn)
	if l := c.Crew.Lead; !l.InProgress() || len(l.Actions) != 1 {
		t.Errorf("it was withdrawn, and the summon is %+v", l)
	}
	c.must("", ReleaseAsked{})
	c.starts("ada")
	if l := c.Crew.Lead; l.Session == "" || len(l.Actions) != 0 {
		t.Errorf("it began, and the summon is %+v", l)
	}
}

// A lead that cannot be started is reported, and the start is not repeated endlessly.
func TestLeadCannotStart(t *testing.T) {
	c := led(t, Limits{}, nil)
	c.must("", crew.SummonAsked{})
	c.must("ada", SessionEnded{Session: c.session("ada"), Outcome: control.CannotStart, Why: "no such program"})
	if l := c.Crew.Lead; l.InProgress() || len(l.Actions) != 0 || c.Agents["ada"].Session != nil {
		t.Errorf("it cannot be started, and is to be told %+v", l)
	}
	if n := c.Crew.Notices[0]; n.Kind != crew.NoticeLead || !strings.Contains(n.Text, "ada did not start") || !strings.Contains(n.Text, "no such program") {
		t.Errorf("people see %+v", n)
	}
}

// A lead that was replaced is asked to end, and its reports do not count.
func TestAnotherLeads(t *testing.T) {
	c := summoned(t)
	id := c.session("ada")
	c.must("", DaemonStarted{BootID: "boot"})
	c.must("", ledBy("bob", Limits{}, nil))
	c.must("ada", SessionAdopted{Session: id, PID: 1})
	if s := c.Agents["ada"].Session; s.Ending == "" {
		t.Errorf("bob leads, and ada's session is %+v", s)
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

// A lead session is called so nowhere else: another boot, another start, another session of the same
// number has another name; and the journal gives the same back.
func TestLeadSessionsAreCalledLikeNoOther(t *testing.T) {
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
		t.Errorf("four sessions, each twice, are called %v", names)
	}
}

// replays: the crew rebuilt from the journal equals the live one.
func (c *crewWorld) replays() {
	c.t.Helper()
	again := New(identity)
	for _, ch := range c.journal {
		line, err := json.Marshal(ch)
		if err != nil {
			c.t.Fatal(err)
		}
		var back Change
		if err := json.Unmarshal(line, &back); err != nil {
			c.t.Fatal(err)
		}
		again.Apply(back)
	}
	live, _ := json.Marshal(c.Crew)
	told, _ := json.Marshal(again.Crew)
	if string(live) != string(told) {
		c.t.Errorf("the journal tells another story:\n%s\n%s", live, told)
	}
}

// Files may be called whatever they are: also like what else is kept beside documents.
func TestDocumentsCalledLikeOthers(t *testing.T) {
	c := led(t, Limits{}, nil)
	for i, id := range []crew.DocID{"agent-1", "lead", "words", "a.b"} {
		c.must("", crew.Imported{ID: id, Document: crew.Document{Status: crew.Sleeping, Identity: crew.Identity{Name: string(id), Seat: i}}})
	}
	c.present("agent-1 sleeping, lead sleeping, words sleeping, a.b sleeping")
	c.replays()
	c.must("", crew.WakeAsked{})
	c.starts("ada")
	c.reports(0, 1, 2, 3)
	c.present("agent-1 alive, lead alive, words alive, a.b alive")
	c.replays()
}

// People name whom they mean by an id or by a name.
func TestMemberOf(t *testing.T) {
	c := summoned(t)
	c.registers("Lyra", 2)
	for name, want := range map[string]crew.DocID{"Kael": "agent-2", "agent-3": "agent-3"} {
		if doc, err := c.FindDocument(name); err != nil || doc.ID != want {
			t.Errorf("%s is %+v, %v", name, doc, err)
		}
	}
	if _, err := c.FindDocument("Lyra"); err == nil || !strings.Contains(err.Error(), "agent-1") || !strings.Contains(err.Error(), "agent-3") {
		t.Errorf("there are two called Lyra, and one who asks is told: %v", err)
	}
	_, err := c.FindDocument("Nadir")
	var unknown *Unknown
	if !errors.As(err, &unknown) || unknown.What != "agent of the team" || !slices.Contains(unknown.Known, "Kael") {
		t.Errorf("nobody is called Nadir, and one who asks is told: %v", err)
	}
}
