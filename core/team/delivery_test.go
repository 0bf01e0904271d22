package team

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/table"
)

// reviews returns a team with two agents in one channel.
func reviews(t *testing.T, limits Limits) *crewWorld {
	c := newCrew(t, limits, two())
	c.must("", circleOf("ada", "bob"))
	for _, name := range []channel.AgentID{"ada", "bob"} {
		c.must("", channel.AgentConnected{Agent: name})
	}
	return c
}

func circleOf(agents ...string) Configured {
	return Configured{
		Agents: two(), Turns: map[string]channel.AgentSettings{"ada": {}, "bob": {}},
		Channels: map[string]Channel{"reviews": {Settings: channel.DefaultSettings(), Agents: agents}},
	}
}

// speaks makes a participant or a person post a message in the channel, and returns its text.
func (c *crewWorld) speaks(in channel.Input, text string) []change.Change {
	c.t.Helper()
	changes, err := c.event(Event{What: in, Text: text})
	if err != nil {
		c.t.Fatal(err)
	}
	return changes
}

func (c *crewWorld) human(text string, mode channel.Mode) []change.Change {
	c.t.Helper()
	return c.speaks(channel.HumanSpoke{Channel: "reviews", By: "julian", Mode: mode, Bytes: len(text)}, text)
}

func (c *crewWorld) said(agent, text string, complete bool) []change.Change {
	c.t.Helper()
	s := c.Agents[agent].Session
	return c.speaks(channel.Said{Token: s.Delivery.Token, Re: s.Delivery.Re, Bytes: len(text), Complete: complete, Ended: complete}, text)
}

// over reports that a session has answered its prompt.
func (c *crewWorld) over(agent string) []change.Change {
	c.t.Helper()
	s := c.Agents[agent].Session
	return c.must(agent, SessionReported{Session: s.ID, Offset: s.Offset + 10, Over: true})
}

// writeAction writes the agent's next action into its session.
func (c *crewWorld) writeAction(agent string) []change.Change {
	c.t.Helper()
	actions := c.AgentChannelActions(agent, c.at)
	if len(actions) == 0 {
		c.t.Fatalf("%s has no pending action", agent)
	}
	return c.must(agent, Delivered{Session: c.session(agent), Action: actions[0], Input: c.Agents[agent].Session.Delivery.Input + 100})
}

func (c *crewWorld) stands(want string) {
	c.t.Helper()
	var is []string
	for _, name := range c.Names() {
		is = append(is, name+" "+string(c.Channels.StateOf(channel.AgentID(name), "reviews")))
	}
	if got := strings.Join(is, ", "); got != want {
		c.t.Errorf("the channel has %s; want %s", got, want)
	}
}

// SPEC T4, T7, J1: a turn is delivered in a session that stays for the next turn. The end of one
// turn and the beginning of the next are one append.
func TestTurnsAreDeliveredInSessions(t *testing.T) {
	c := reviews(t, Limits{})
	c.stands("ada QUEUED, bob QUEUED")
	c.human("is it good?", "")
	c.stands("ada ACTIVE, bob QUEUED")
	s := c.Agents["ada"].Session
	if !s.ServesChannels() || s.Kind != control.ChannelTurn || s.Delivery.Do != channel.TellTurn || s.Delivery.Token.Turn != 1 ||
		s.Delivery.Confirmed {
		t.Fatalf("ada's session is %+v, %+v", s, s.Delivery)
	}
	c.must("ada", SessionStarted{Session: s.ID, PID: 1, Input: 50})
	if lease := c.Channels.ByID["reviews"].Head.Lease; !lease.Delivered || c.Agents["ada"].Session.Delivery.Input != 50 {
		t.Errorf("after the start of the process, delivered is %v, %+v", lease.Delivered, c.Agents["ada"].Session.Delivery)
	}
	changes := c.said("ada", "it is", true)
	if rows := rowsOf(changes); !slices.Equal(rows[:3], []string{"T7", "T4", "J1"}) {
		t.Errorf("the hand-off is %v", rows)
	}
	if text := change.As[channel.Set](changes[0].Body).Text; text != "it is" || change.As[channel.Set](changes[1].Body).Text != "" {
		t.Errorf("ada's message is stored as %q", text)
	}
	c.over("ada")
	if s := c.Agents["ada"].Session; s == nil || s.Ending != "" {
		t.Errorf("after its answer ada's session is %+v", s)
	}
	c.starts("bob")
	c.said("bob", "I agree", true)
	c.stands("ada ACTIVE, bob QUEUED")
	if ada := c.session("ada"); ada != "ada-1" {
		t.Errorf("ada has a second session %s", ada)
	}
	rows := rowsOf(c.writeAction("ada"))
	if !slices.Equal(rows, []string{"S8", "N6"}) {
		t.Errorf("delivered in the running session: %v", rows)
	}
	c.must("ada", SessionReported{Session: "ada-1", Offset: 15, Over: true, Heard: 149})
	if s := c.Agents["ada"].Session; !s.AnswerPending() {
		t.Error("it listens without having read the last prompt, but counts as having answered it")
	}
	if again := c.must("ada",
		Delivered{
			Session: "ada-1",
			Action:  channel.Action{Token: channel.Token{Channel: "reviews", Agent: "ada", Turn: 3}, Do: channel.TellTurn},
			Input:   150,
		}); len(again) != 0 {
		t.Errorf("delivered twice: %+v", again)
	}
}

func rowsOf(changes []change.Change) (rows []string) {
	for _, ch := range changes {
		rows = append(rows, ch.Row)
	}
	return rows
}

// SPEC J1: an agent with a prompt to receive queues behind the session that has the slot. A session
// that has answered ends when another request wants the slot, or when it has no further prompt.
func TestTalkQueues(t *testing.T) {
	c := reviews(t, Limits{})
	c.wants("ada", "run_once")
	c.starts("ada")
	c.human("is it good?", "")
	if queue := c.Agents["ada"].Queue; len(queue) != 1 || queue[0].For != ForChannels {
		t.Fatalf("the queue of ada's slot is %+v", queue)
	}
	c.ends("ada", control.OK)
	if s := c.Agents["ada"].Session; !s.ServesChannels() {
		t.Fatalf("ada's slot has %+v", s)
	}
	c.starts("ada")
	c.wants("ada", "run_once")
	c.said("ada", "it is", true)
	if s := c.Agents["ada"].Session; s.Ending != "" {
		t.Errorf("ada has the turn, but its session is ending: %q", s.Ending)
	}
	c.over("ada")
	if s := c.Agents["ada"].Session; s.Ending != channelIdleWords {
		t.Errorf("another request is queued; ada's session is ending because %q", s.Ending)
	}
	c.ends("ada", control.OK)
	if s := c.Agents["ada"].Session; s.For != ForControl {
		t.Errorf("ada's slot now has %+v", s)
	}
	c.stands("ada QUEUED, bob ACTIVE")

	c.starts("bob")
	c.said("bob", "fine", true)
	c.over("bob")
	at := c.Deadline(c.Agents["bob"])
	if want := c.at.Add(channelIdleMax); !at.Equal(want) {
		t.Fatalf("bob's session ends at %s, want %s", at, want)
	}
	c.at = at.Add(-time.Second)
	c.must("bob", TimerFired{})
	if s := c.Agents["bob"].Session; s.Ending != channelIdleWords {
		t.Errorf("after %s bob's session is %+v", channelIdleMax, s)
	}
}

// TestTalkWithdrawn checks that a request leaves the queue when its action is no longer pending,
// and that a session for it is not started.
func TestTalkWithdrawn(t *testing.T) {
	c := reviews(t, Limits{})
	c.wants("ada", "run_once")
	c.starts("ada")
	c.human("is it good?", "")
	c.must("", channel.RemoveAsked{Channel: "reviews", Agent: "ada"})
	if queue := c.Agents["ada"].Queue; len(queue) != 0 {
		t.Errorf("ada is in no channel, but the queue is %+v", queue)
	}
	if s := c.Agents["bob"].Session; !s.ServesChannels() {
		t.Fatalf("bob's session is %+v", s)
	}
	if ok, _ := c.MayStart("bob", "bob-1", c.at); !ok {
		t.Error("bob may not start")
	}
	c.must("", channel.RemoveAsked{Channel: "reviews", Agent: "bob"})
	if ok, why := c.MayStart("bob", "bob-1", c.at); ok || why == "" {
		t.Errorf("bob may start for a turn that has ended: %q", why)
	}
	c.ends("bob", control.Withdrawn)
	if s := c.Agents["bob"].Session; s != nil {
		t.Errorf("bob has %+v", s)
	}
}

// SPEC T11, T18: a session that fails during an answer is a crash of its agent. A session that was
// stopped, or that had answered, is not.
func TestTalkCrashes(t *testing.T) {
	c := reviews(t, Limits{})
	c.human("is it good?", "")
	c.starts("ada")
	changes := c.ends("ada", control.Failed)
	if rows := rowsOf(changes); !slices.Contains(rows, "T11") || !slices.Contains(rows, "T4") {
		t.Errorf("ada crashes: %v", rows)
	}
	c.stands("ada OFFLINE, bob ACTIVE")
	c.must("", channel.AgentConnected{Agent: "ada"})
	c.stands("ada IDLE, bob ACTIVE")

	c.starts("bob")
	c.must("", channel.SkipAsked{Channel: "reviews"})
	actions := c.AgentChannelActions("bob", c.at)
	if len(actions) == 0 || actions[0].Do != channel.StopWork {
		t.Fatalf("bob must be stopped, but its actions are %+v", actions)
	}
	c.ends("bob", control.Failed)
	c.must("", channel.ActionConfirmed{Token: actions[0].Token, Do: channel.StopWork, N: actions[0].N})
	if is := c.Channels.Agents["bob"]; !is.Connected {
		t.Error("bob was stopped but counts as crashed")
	}
	if s := c.Agents["bob"].Session; s != nil && s.Delivery.Token.Turn == 2 {
		t.Errorf("bob has %+v", s)
	}
}

// SPEC edge case 4: an answer that ends without TURN_COMPLETE causes a warning, and the turn
// continues until its timeout.
func TestTalkEndsUnfinished(t *testing.T) {
	c := reviews(t, Limits{})
	c.human("is it good?", "")
	c.starts("ada")
	changes := c.ends("ada", control.OK)
	at := slices.IndexFunc(changes, func(ch change.Change) bool { return ch.Row == "N7" })
	if at < 0 || change.As[channel.Set](changes[at].Body).Body.Warn == "" {
		t.Errorf("no warning: %v", rowsOf(changes))
	}
	c.stands("ada ACTIVE, bob QUEUED")
	about := c.Channels.Deadline("reviews")
	c.at = about.At
	c.must("", channel.TimerFired{About: about})
	c.stands("ada QUEUED, bob ACTIVE")
}

// SPEC X8: during a hold no turn begins and no agent is started. A session between turns keeps its
// conversation, and the release lets the channel continue.
func TestTalkHeld(t *testing.T) {
	c := reviews(t, Limits{})
	c.human("is it good?", "")
	c.starts("ada")
	c.must("", HoldAsked{})
	c.said("ada", "it is", true)
	c.over("ada")
	c.stands("ada QUEUED, bob QUEUED")
	if parked := c.Channels.ByID["reviews"].Head.Parked; parked != channel.Held {
		t.Errorf("the channel is parked by %q", parked)
	}
	if s := c.Agents["ada"].Session; s.Ending != "" {
		t.Errorf("the hold ends ada's session: %q", s.Ending)
	}
	c.must("", ReleaseAsked{})
	c.stands("ada QUEUED, bob ACTIVE")
	c.must("", StopAsked{})
	if s := c.Agents["ada"].Session; s.Ending == "" {
		t.Error("fairlead stops, but ada's idle session does not end")
	}
}

// SPEC X9: a daily limit ends the turn with its name, and the agent gets no turn until the next
// day. The limit of a session's duration applies to each answer.
func TestTalkLimits(t *testing.T) {
	c := reviews(t, Limits{})
	conf := circleOf("ada", "bob")
	limited := quiet
	limited.Limits = Limits{TokensPerDay: 100, Session: time.Minute}
	conf.Agents["ada"] = limited
	c.must("", conf)
	c.human("is it good?", "")
	id := c.starts("ada")
	changes := c.must("ada", SessionReported{Session: id, Offset: 5, Usage: change.Usage{OutputTokens: 100}})
	at := slices.IndexFunc(changes, func(ch change.Change) bool { return ch.Row == "X9" && ch.From == "ACTIVE" })
	if at < 0 || !strings.Contains(change.As[channel.Set](changes[at].Body).Body.Why, "tokens_per_day 100") {
		t.Fatalf("the turn continues: %v", rowsOf(changes))
	}
	c.stands("ada QUEUED, bob ACTIVE")
	c.ends("ada", control.OK)
	midnight := c.at.Truncate(24 * time.Hour).Add(24 * time.Hour)
	if got := c.Deadline(c.Agents["ada"]); !got.Equal(midnight) {
		t.Fatalf("ada's limit is lifted at %s, want %s", got, midnight)
	}
	c.at = midnight
	c.must("ada", TimerFired{})
	if is := c.Channels.Agents["ada"]; is.Limit != "" {
		t.Errorf("the day has ended, but ada is limited by %q", is.Limit)
	}

	stop := c.AgentChannelActions("ada", c.at)[0]
	c.must("", channel.ActionConfirmed{Token: stop.Token, Do: channel.StopWork, N: stop.N})
	c.must("", channel.GrantAsked{Channel: "reviews", Agent: "ada", Now: true})
	c.starts("ada")
	if got, want := c.Deadline(c.Agents["ada"]), c.at.Add(time.Minute); !got.Equal(want) {
		t.Fatalf("ada's answer may take until %s, want %s", got, want)
	}
	c.at = c.at.Add(time.Minute)
	c.must("ada", TimerFired{})
	if s := c.Agents["ada"].Session; !strings.Contains(s.Ending, "session 1m0s") {
		t.Errorf("after an answer of a minute ada's session is %+v", s)
	}
	if got := c.Channels.StateOf("ada", "reviews"); got != channel.Queued || c.Channels.Agents["ada"].Limit != "" {
		t.Errorf("ada is %s, limited by %q", got, c.Channels.Agents["ada"].Limit)
	}
	c.says("ada", control.Resting, "pause")
}

// TestChannelsAreConfigured checks that an agent that a person removed stays removed at the next
// start, that a new agent in fairlead.yaml joins, and that a channel that was deleted there keeps
// its messages and refuses new ones.
func TestChannelsAreConfigured(t *testing.T) {
	c := reviews(t, Limits{})
	if changes := c.must("", circleOf("ada", "bob")); len(changes) != 0 {
		t.Errorf("an unchanged configuration causes %v", rowsOf(changes))
	}
	c.must("", channel.RemoveAsked{Channel: "reviews", Agent: "ada"})
	c.must("", circleOf("ada", "bob"))
	c.stands("ada IDLE, bob QUEUED")
	c.must("", circleOf("bob"))
	c.must("", circleOf("bob", "ada"))
	c.stands("ada QUEUED, bob QUEUED")
	c.human("hello", "")
	conf := circleOf()
	conf.Channels = map[string]Channel{"other": {Settings: channel.DefaultSettings()}}
	c.must("", conf)
	c.stands("ada IDLE, bob IDLE")
	_, err := c.event(Event{What: channel.HumanSpoke{Channel: "reviews", By: "julian", Bytes: 1}, Text: "x"})
	var refused *table.Refusal
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "no longer in fairlead.yaml") {
		t.Errorf("a message in a deleted channel: %v", err)
	}
	if got := c.ChannelIDs(); !slices.Equal(got, []string{"other", "reviews"}) {
		t.Errorf("there are %v", got)
	}
	_, err = c.event(Event{What: channel.AssignAsked{Channel: "reviewz", Agent: "ada"}})
	var unknown *Unknown
	if !errors.As(err, &unknown) || unknown.What != "channel" {
		t.Errorf("an unknown channel: %v", err)
	}
	delete(conf.Agents, "bob")
	delete(conf.Turns, "bob")
	c.must("", conf)
	if is := c.Channels.Agents["bob"]; is.Connected {
		t.Error("bob is no longer in fairlead.yaml but is connected")
	}
}

// interrupted is a circle of ada and bob, whose lead lena does not participate. A person has just interrupted ada's turn.
func interrupted(t *testing.T) *crewWorld {
	t.Helper()
	c := newCrew(t, Limits{}, map[string]Settings{"ada": quiet, "bob": quiet, "lena": quiet})
	conf := circleOf("ada", "bob")
	conf.Agents["lena"], conf.Turns["lena"] = quiet, channel.AgentSettings{}
	settings := channel.DefaultSettings()
	settings.Lead = "lena"
	conf.Channels["reviews"] = Channel{Settings: settings, Agents: []string{"ada", "bob"}}
	c.must("", conf)
	for _, name := range []channel.AgentID{"ada", "bob", "lena"} {
		c.must("", channel.AgentConnected{Agent: name})
	}
	c.human("go", "")
	c.starts("ada")
	c.human("wait: what is this?", channel.Interrupt)
	return c
}

// The session that a person interrupted ends before its stop is confirmed. The next one, which goes on with the turn,
// begins after that: else the stop would end it, too.
func TestGoesOnAfterTheStopIsConfirmed(t *testing.T) {
	c := interrupted(t)
	stop := c.AgentChannelActions("ada", c.at)[0]
	c.starts("lena")
	c.said("lena", "a review", true)
	c.ends("ada", control.Cancelled)
	if s := c.Agents["ada"].Session; s != nil {
		t.Fatalf("ada works before its stop is confirmed: %+v", s.Delivery)
	}
	c.must("", channel.ActionConfirmed{Token: stop.Token, Do: channel.StopWork, N: stop.N})
	if s := c.Agents["ada"].Session; s == nil || s.Delivery.Do != channel.TellGoOn {
		t.Errorf("ada has %+v", s)
	}
}

// SPEC T17: a lead that does not participate in the channel answers a person who interrupts, in its
// own session. The participant that has the turn is stopped first, and continues afterwards.
func TestLeadAnswersAside(t *testing.T) {
	c := interrupted(t)
	c.stands("ada WAITING, bob QUEUED, lena IDLE")
	lena := c.Agents["lena"].Session
	if !lena.ServesChannels() || lena.Delivery.Do != channel.TellAside || lena.Delivery.Re != 2 {
		t.Fatalf("lena's session is %+v", lena)
	}
	stop := c.AgentChannelActions("ada", c.at)
	if len(stop) != 1 || stop[0].Do != channel.StopWork {
		t.Fatalf("ada's actions are %+v", stop)
	}
	c.over("ada")
	c.must("", channel.ActionConfirmed{Token: stop[0].Token, Do: channel.StopWork, N: stop[0].N})
	c.starts("lena")
	c.said("lena", "a review", true)
	c.stands("ada ACTIVE, bob QUEUED, lena IDLE")
	if actions := c.AgentChannelActions("ada", c.at); len(actions) != 1 || actions[0].Do != channel.TellGoOn {
		t.Errorf("ada's actions are %+v", actions)
	}
	c.writeAction("ada")
	if delivery := c.Agents["ada"].Session.Delivery; delivery.Do != channel.TellGoOn || !delivery.Over.IsZero() {
		t.Errorf("ada received %+v", delivery)
	}
	if got := c.ChannelsOf("lena"); len(got) != 0 {
		t.Errorf("lena is in the channels %v", got)
	}
}

// SPEC T20, T21, J2: a disabled agent is in no rotation and has no session.
func TestDisabled(t *testing.T) {
	c := reviews(t, Limits{})
	c.must("", channel.DisableAsked{Agent: "ada"})
	c.stands("ada OFFLINE, bob QUEUED")
	c.human("hello", "")
	c.stands("ada OFFLINE, bob ACTIVE")
	c.must("", channel.EnableAsked{Agent: "ada"})
	c.stands("ada IDLE, bob ACTIVE")
}

// TestTalkNeverDelivered checks a session that ended before it was seen running. It has received
// and answered nothing, so its action is delivered in the next session.
func TestTalkNeverDelivered(t *testing.T) {
	c := reviews(t, Limits{})
	c.human("go", "")
	c.must("", channel.SkipAsked{Channel: "reviews"})
	c.ends("ada", control.Withdrawn)
	c.stands("ada QUEUED, bob ACTIVE")
	id := c.session("bob")
	c.human("stop: what is this?", channel.Interrupt)
	if s := c.Agents["bob"].Session; s.ID != id || s.Delivery.Confirmed {
		t.Fatalf("bob's session is %+v", s)
	}
	c.ends("bob", control.Lost)
	if lease := c.Channels.ByID["reviews"].Head.Lease; lease.Delivered {
		t.Errorf("bob was never seen running, but its action counts as delivered: %+v", lease)
	}
}
