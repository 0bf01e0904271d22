package app

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// crowd is a thousand channels with eight foreign agents each, under random load. People post in
// all modes. Agents answer, pass, wait, fall silent, answer too late and disappear. The engine
// crashes again and again. Its records are kept independently: a confirmed message is in the
// journal once, and another one once or not at all. Shorter sizes have fewer channels;
// FAIRLEAD_LONG=1 plays the thousand three times and takes some minutes.
type crowd struct {
	*bubble
	rnd      *rand.Rand
	channels []string
	agents   []string
	said     map[string]bool // text → it was confirmed
	n        int             // number of texts so far
	deaths   int
}

// TestCrowd checks that no promise of the channels is broken and no message is lost or doubled.
func TestCrowd(t *testing.T) {
	t.Parallel()
	seeds, size := uint64(1), 150
	switch {
	case testsize.Long():
		seeds, size = 3, 1000
	case testsize.Race, !testsize.CI():
		size = 40
	}
	dir := t.TempDir()
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t, dir, rand.New(rand.NewPCG(seed, 5)), size)
				defer c.end()
				c.load(12 * size)
				c.settleAll()
				c.audit()
			})
		})
	}
}

func newCrowd(t *testing.T, dir string, rnd *rand.Rand, size int) *crowd {
	c := &crowd{bubble: newBubble(t, dir), rnd: rnd, said: map[string]bool{}}
	for i := range max(16, size/5) {
		name := fmt.Sprint("a", i)
		c.agents = append(c.agents, name)
		agent := bubbleAgent(dir, name)
		agent.Loop = config.LoopForeign
		c.conf.Agents = append(c.conf.Agents, agent)
	}
	c.conf.TurnConfig = config.TurnConfig{
		DefaultTimeoutSeconds: 60, HumanInterruptMode: config.Inject, AnnounceTimeouts: true, AnnounceDisconnects: true,
		AutoDetectSilenceSeconds: 10,
	}
	for i := range size {
		name := fmt.Sprint("c", i)
		c.channels = append(c.channels, name)
		channel := config.Channel{Name: name, HumanInterruptMode: config.Inject, MaxRounds: 1 + i%3, WaitTimeout: time.Minute}
		for k := range 8 {
			channel.Agents = append(channel.Agents, c.agents[(i*3+k)%len(c.agents)])
		}
		if i%5 == 0 {
			channel.Lead = c.agents[(i*3+9)%len(c.agents)]
		}
		c.conf.Channels = append(c.conf.Channels, channel)
	}
	return c
}

func (c *crowd) any(list []string) string { return list[c.rnd.IntN(len(list))] }

func (c *crowd) text() string {
	c.n++
	return fmt.Sprint("words ", c.n)
}

// took records whether a message was confirmed. A crashed engine may have accepted it or not.
func (c *crowd) took(text string, err error) {
	if err == nil {
		c.said[text] = true
	}
}

// restartIfDead opens the next engine after a crash.
func (c *crowd) restartIfDead() {
	if c.engine != nil && !c.crashPoint.isDead() {
		return
	}
	if c.engine != nil {
		c.deaths++
	}
	c.discardEngine()
	c.open(60+c.rnd.IntN(8*len(c.channels)), c.rnd.IntN(2) == 0)
	c.run()
	c.settle()
}

func (c *crowd) load(things int) {
	for n := range things {
		c.restartIfDead()
		if n == things/2 { // none sends heartbeats: all count as disconnected and must be assigned again
			c.after(35 * time.Second)
			c.assignAgain()
		}
		ctx, channel, agent := c.t.Context(), c.any(c.channels), c.any(c.agents)
		switch c.rnd.IntN(40) {
		case 0:
			c.after(time.Duration(c.rnd.IntN(900)) * time.Millisecond)
		case 1:
			_, _ = c.engine.Channels.Grant(ctx, human, channel, agent, c.rnd.IntN(2) == 0)
		case 2:
			_, _ = c.engine.Channels.Skip(ctx, human, channel, 0)
		case 3:
			_, _ = c.engine.Channels.Override(ctx, human, channel, c.rnd.IntN(2) == 0)
		case 4:
			_, _ = c.engine.Channels.Assign(ctx, human, channel, agent)
		case 5:
			if c.rnd.IntN(4) == 0 {
				_, _ = c.engine.Channels.Unassign(ctx, human, channel, agent)
			}
		case 6:
			if c.rnd.IntN(4) == 0 {
				_, _ = c.engine.Channels.AgentLeft(ctx, agent)
			}
		case 7:
			c.speaksLate(channel, agent)
		case 8, 9, 10, 11, 12, 13, 14, 15:
			text := c.text()
			_, err := c.engine.Channels.Say(ctx, human, channel, text, []string{"", "queue", "inject", "interrupt", "parallel"}[c.rnd.IntN(5)])
			c.took(text, err)
		default:
			c.acts(agent, c.rnd.IntN(8) == 0)
		}
	}
}

// assignAgain assigns all agents to their channels again.
func (c *crowd) assignAgain() {
	ctx := c.t.Context()
	for _, agent := range c.agents {
		_, _ = c.engine.Channels.AgentReady(ctx, agent)
	}
	for _, channel := range c.conf.Channels {
		for _, agent := range channel.Agents {
			_, _ = c.engine.Channels.Assign(ctx, human, channel.Name, agent) // an error says that it is assigned already
		}
	}
}

// acts makes an agent fetch its pending actions and answer them.
func (c *crowd) acts(agent string, sloppy bool) {
	ctx := c.t.Context()
	if _, err := c.engine.Channels.AgentReady(ctx, agent); err != nil {
		return // the engine has crashed, or the agent is ready already
	}
	_ = c.engine.Channels.AgentBeat(ctx, agent)
	errands, err := c.engine.Channels.AgentActions(ctx, agent, 0)
	if err != nil {
		return
	}
	for _, errand := range errands {
		if _, err := c.engine.Channels.AgentConfirm(ctx, agent, errand.Key); err != nil || errand.Do == string(channel.StopWork) {
			continue
		}
		s := view.Speech{
			Channel: errand.Channel, Agent: agent, Turn: errand.Turn, Re: errand.Message, Text: c.text(), Complete: true,
			Ended: true,
		}
		if !sloppy {
			_, err := c.engine.Channels.AgentSaid(ctx, s)
			c.took(s.Text, err)
			continue
		}
		switch c.rnd.IntN(5) {
		case 0:
			_, _ = c.engine.Channels.AgentPass(ctx, s.Channel, agent, s.Turn)
		case 1:
			_, _ = c.engine.Channels.AgentWait(ctx, s.Channel, agent, s.Turn, "a build")
		case 2: // no message at all
		default:
			s.Complete = c.rnd.IntN(2) == 0
			_, err := c.engine.Channels.AgentSaid(ctx, s)
			c.took(s.Text, err)
		}
	}
}

// speaksLate makes an agent post a message under a turn that it does not have.
func (c *crowd) speaksLate(channel, agent string) {
	s := view.Speech{Channel: channel, Agent: agent, Turn: uint64(c.rnd.IntN(9)) + 1000, Text: c.text(), Complete: true}
	_, err := c.engine.Channels.AgentSaid(c.t.Context(), s)
	c.took(s.Text, err)
}

// settleAll lets all agents answer until no action is pending.
func (c *crowd) settleAll() {
	c.restartIfDead()
	c.discardEngine()
	c.open(0, false)
	c.run()
	c.settle()
	c.assignAgain()
	for _, channel := range c.channels {
		text := c.text()
		_, err := c.engine.Channels.Say(c.t.Context(), human, channel, text, "queue")
		c.took(text, err)
	}
	for range 20 {
		for _, agent := range c.agents {
			c.acts(agent, false)
		}
		c.after(8 * time.Second)
	}
}

// records are the contents of the journal for all channels, read once from its beginning.
type records struct {
	t         *testing.T
	texts     map[string]int
	numbers   map[string]uint64                   // channel → number of its last message
	delivered map[string]bool                     // channel/turn → its prompt was delivered
	states    map[string]map[string]channel.State // channel → agent → state
	people    map[string]channel.MessageState     // channel/number → state of a person's message
	turns     int
}

// audit reads the whole journal and compares it with the records.
func (c *crowd) audit() {
	r := &records{
		t: c.t, texts: map[string]int{}, numbers: map[string]uint64{}, delivered: map[string]bool{},
		states: map[string]map[string]channel.State{}, people: map[string]channel.MessageState{},
	}
	history := c.history()
	for _, rec := range history {
		r.read(rec)
	}
	for text, n := range r.texts {
		if n != 1 {
			c.t.Errorf("%q is in the journal %d times", text, n)
		}
	}
	for text := range c.said {
		if r.texts[text] == 0 {
			c.t.Errorf("%q was confirmed and is not in the journal", text)
		}
	}
	answered := c.unanswered(r.people)
	c.t.Logf("%d channels, %d agents, %d texts, %d messages of people (%d answered), %d turns, %d deaths, %d changes",
		len(c.channels), len(c.agents), len(r.texts), len(r.people), answered, r.turns, c.deaths, len(history))
	if err := c.engineTeamIsReplayed(); err != nil {
		c.t.Error(err)
	}
	if c.deaths == 0 || r.turns < 5*len(c.channels) {
		c.t.Error("the load had no effect")
	}
}

// unanswered finds messages of people that no agent has answered although one could, and counts the
// others.
func (c *crowd) unanswered(people map[string]channel.MessageState) (answered int) {
	for key, state := range people {
		if state == channel.Answered || state == channel.Lapsed {
			answered++
			continue
		}
		channel, _, _ := strings.Cut(key, "/")
		view, err := c.engine.Channels.Channel(c.t.Context(), channel)
		if err != nil {
			c.t.Fatal(err)
		}
		if len(view.Queue) > 0 {
			c.t.Errorf("message %s is %s, but #%s has %v, parked: %q (%s)", key, state, channel, view.Queue, view.Parked, view.Why)
		}
	}
	return answered
}

// read records one change and checks it: each message has the next number, a turn is delivered
// once, an answered message stays answered, and at most one agent has the turn.
func (r *records) read(rec journal.Change) {
	ch, err := loop.ChangeOf(rec)
	if err != nil {
		r.t.Fatal(err)
	}
	channelName, is := strings.CutPrefix(ch.Entity, channel.EntityPrefix)
	if !is || change.As[channel.Set](ch.Body) == nil {
		return
	}
	set := change.As[channel.Set](ch.Body)
	if post := set.Body.Post; post != nil {
		r.texts[set.Text]++
		if r.numbers[channelName]++; post.N != r.numbers[channelName] {
			r.t.Fatalf("#%s: message %d comes after %d", channelName, post.N, r.numbers[channelName]-1)
		}
	}
	if rec.Trigger == string(channel.TellTurn) {
		key := fmt.Sprint(channelName, "/", set.Body.Head.Turn)
		if r.delivered[key] {
			r.t.Fatalf("turn %s was delivered twice", key)
		}
		r.delivered[key] = true
	}
	for _, m := range set.Body.Messages {
		key := fmt.Sprint(channelName, "/", m.N)
		if was := r.people[key]; was == channel.Answered && m.State != was || was == channel.Lapsed {
			r.t.Fatalf("message %s changed from %s to %s", key, was, m.State)
		}
		r.people[key] = m.State
	}
	if rec.From != rec.To {
		r.moved(channelName, string(set.Agent), rec)
	}
}

func (r *records) moved(channelName, agent string, rec journal.Change) {
	if r.states[channelName] == nil {
		r.states[channelName] = map[string]channel.State{}
	}
	r.states[channelName][agent] = channel.State(rec.To)
	holders := 0
	for _, s := range r.states[channelName] {
		if s == channel.Active || s == channel.Waiting {
			holders++
		}
	}
	if holders > 1 {
		r.t.Fatalf("in #%s %d agents have the turn after change %d: %v", channelName, holders, rec.Seq, r.states[channelName])
	}
	if rec.To == string(channel.Active) && rec.From == string(channel.Queued) {
		r.turns++
	}
}
