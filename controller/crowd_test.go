package controller

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/controller/channels"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/channel"
)

// throng is a thousand channels with eight foreign agents each, under random load: people speak in
// all modes, agents answer, pass, wait, fall silent, come too late and disappear, and the
// engine dies again and again. Its book is kept by hand: what was taken is in the journal
// once, what was not is there once or not at all. Shorter sizes have fewer
// channels; FAIRLEAD_LONG=1 has the thousand, three times, and takes some minutes.
type throng struct {
	*bubble
	rnd      *rand.Rand
	channels []string
	agents   []string
	said     map[string]bool // text → it was taken
	n        int             // texts so far
	deaths   int
}

// TestCrowd: no promise of the channels is broken, and no message is lost or doubled.
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

func newCrowd(t *testing.T, dir string, rnd *rand.Rand, size int) *throng {
	c := &throng{bubble: newBubble(t, dir), rnd: rnd, said: map[string]bool{}}
	for i := range max(16, size/5) {
		name := fmt.Sprint("a", i)
		c.agents = append(c.agents, name)
		agent := bubbleAgent(dir, name)
		agent.Loop = config.LoopForeign
		c.conf.Agents = append(c.conf.Agents, agent)
	}
	c.conf.TurnConfig = config.TurnConfig{
		DefaultTimeoutSeconds: 60, HumanInterruptMode: config.Inject, AnnounceTimeouts: true, AnnounceDisconnects: true, AutoDetectSilenceSeconds: 10,
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

func (c *throng) any(list []string) string { return list[c.rnd.IntN(len(list))] }

func (c *throng) text() string {
	c.n++
	return fmt.Sprint("words ", c.n)
}

// took records whether a text was accepted: an engine that crashed may have accepted it or not.
func (c *throng) took(text string, err error) {
	if err == nil {
		c.said[text] = true
	}
}

// alive opens the next engine where the last one has died.
func (c *throng) alive() {
	if c.engine != nil && !c.fate.isDead() {
		return
	}
	if c.engine != nil {
		c.deaths++
	}
	c.bury()
	c.open(60+c.rnd.IntN(8*len(c.channels)), c.rnd.IntN(2) == 0)
	c.run()
	c.settle()
}

func (c *throng) load(things int) {
	for n := range things {
		c.alive()
		if n == things/2 { // none reports that it is alive: all count as gone and must be invited again
			c.after(35 * time.Second)
			c.askIn()
		}
		ctx, channel, agent := c.t.Context(), c.any(c.channels), c.any(c.agents)
		switch c.rnd.IntN(40) {
		case 0:
			c.after(time.Duration(c.rnd.IntN(900)) * time.Millisecond)
		case 1:
			_, _ = c.engine.Grant(ctx, human, channel, agent, c.rnd.IntN(2) == 0)
		case 2:
			_, _ = c.engine.Skip(ctx, human, channel, 0)
		case 3:
			_, _ = c.engine.Override(ctx, human, channel, c.rnd.IntN(2) == 0)
		case 4:
			_, _ = c.engine.Assign(ctx, human, channel, agent)
		case 5:
			if c.rnd.IntN(4) == 0 {
				_, _ = c.engine.Unassign(ctx, human, channel, agent)
			}
		case 6:
			if c.rnd.IntN(4) == 0 {
				_, _ = c.engine.AgentLeft(ctx, agent)
			}
		case 7:
			c.speaksLate(channel, agent)
		case 8, 9, 10, 11, 12, 13, 14, 15:
			text := c.text()
			_, err := c.engine.Say(ctx, human, channel, text, []string{"", "queue", "inject", "interrupt", "parallel"}[c.rnd.IntN(5)])
			c.took(text, err)
		default:
			c.acts(agent, c.rnd.IntN(8) == 0)
		}
	}
}

// askIn assigns everybody to his channels again who has left them.
func (c *throng) askIn() {
	ctx := c.t.Context()
	for _, agent := range c.agents {
		_, _ = c.engine.AgentReady(ctx, agent)
	}
	for _, channel := range c.conf.Channels {
		for _, agent := range channel.Agents {
			_, _ = c.engine.Assign(ctx, human, channel.Name, agent) // that he stands there already is an answer
		}
	}
}

// acts is an agent that fetches what it is to be told, and does something about it.
func (c *throng) acts(agent string, sloppy bool) {
	ctx := c.t.Context()
	if _, err := c.engine.AgentReady(ctx, agent); err != nil {
		return // the engine is dead, or it is ready already
	}
	_ = c.engine.AgentBeat(ctx, agent)
	errands, err := c.engine.AgentActions(ctx, agent, 0)
	if err != nil {
		return
	}
	for _, errand := range errands {
		if _, err := c.engine.AgentConfirm(ctx, agent, errand.Key); err != nil || errand.Do == string(channel.StopWork) {
			continue
		}
		s := view.Speech{Channel: errand.Channel, Agent: agent, Turn: errand.Turn, Re: errand.Message, Text: c.text(), Complete: true, Ended: true}
		if !sloppy {
			_, err := c.engine.AgentSaid(ctx, s)
			c.took(s.Text, err)
			continue
		}
		switch c.rnd.IntN(5) {
		case 0:
			_, _ = c.engine.AgentPass(ctx, s.Channel, agent, s.Turn)
		case 1:
			_, _ = c.engine.AgentWait(ctx, s.Channel, agent, s.Turn, "a build")
		case 2: // it says nothing at all
		default:
			s.Complete = c.rnd.IntN(2) == 0
			_, err := c.engine.AgentSaid(ctx, s)
			c.took(s.Text, err)
		}
	}
}

// speaksLate is an agent that says something under a turn that it has not.
func (c *throng) speaksLate(channel, agent string) {
	s := view.Speech{Channel: channel, Agent: agent, Turn: uint64(c.rnd.IntN(9)) + 1000, Text: c.text(), Complete: true}
	_, err := c.engine.AgentSaid(c.t.Context(), s)
	c.took(s.Text, err)
}

// settleAll lets all agents answer until none has anything to say.
func (c *throng) settleAll() {
	c.alive()
	c.bury()
	c.open(0, false)
	c.run()
	c.settle()
	c.askIn()
	for _, channel := range c.channels {
		text := c.text()
		_, err := c.engine.Say(c.t.Context(), human, channel, text, "queue")
		c.took(text, err)
	}
	for range 20 {
		for _, agent := range c.agents {
			c.acts(agent, false)
		}
		c.after(8 * time.Second)
	}
}

// records are what the journal says of all channels, read once from its beginning.
type records struct {
	t       *testing.T
	texts   map[string]int
	numbers map[string]uint64                   // channel → of its last message
	told    map[string]bool                     // channel/turn
	states  map[string]map[string]channel.State // channel → agent
	people  map[string]channel.MessageState     // channel/number
	turns   int
}

// audit reads the whole journal and compares it with the book.
func (c *throng) audit() {
	r := &records{
		t: c.t, texts: map[string]int{}, numbers: map[string]uint64{}, told: map[string]bool{},
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
			c.t.Errorf("%q was taken, and is not in the journal", text)
		}
	}
	answered := c.unanswered(r.people)
	c.t.Logf("%d channels, %d agents, %d texts, %d messages of people (%d answered), %d turns, %d deaths, %d changes",
		len(c.channels), len(c.agents), len(r.texts), len(r.people), answered, r.turns, c.deaths, len(history))
	if err := c.engineTeamIsReplayed(); err != nil {
		c.t.Error(err)
	}
	if c.deaths == 0 || r.turns < 5*len(c.channels) {
		c.t.Error("the load is none")
	}
}

// unanswered finds messages of people that no agent has answered although one could, and counts the
// others.
func (c *throng) unanswered(people map[string]channel.MessageState) (answered int) {
	for key, state := range people {
		if state == channel.Answered || state == channel.Lapsed {
			answered++
			continue
		}
		channel, _, _ := strings.Cut(key, "/")
		view, err := c.engine.Channel(c.t.Context(), channel)
		if err != nil {
			c.t.Fatal(err)
		}
		if len(view.Queue) > 0 {
			c.t.Errorf("message %s is %s, and #%s has %v, parked: %q (%s)", key, state, channel, view.Queue, view.Parked, view.Why)
		}
	}
	return answered
}

// read takes one change in: each thing said has the next number, a turn is told once, a message
// that is answered stays so, and one agent at most has the turn.
func (r *records) read(rec journal.Change) {
	ch, err := loop.ChangeOf(rec)
	if err != nil {
		r.t.Fatal(err)
	}
	channelName, is := strings.CutPrefix(ch.Entity, channels.ChannelPrefix)
	if !is || ch.Body.Turn == nil {
		return
	}
	set := ch.Body.Turn
	if post := set.Body.Post; post != nil {
		r.texts[set.Text]++
		if r.numbers[channelName]++; post.N != r.numbers[channelName] {
			r.t.Fatalf("#%s: message %d comes after %d", channelName, post.N, r.numbers[channelName]-1)
		}
	}
	if rec.Trigger == string(channel.TellTurn) {
		key := fmt.Sprint(channelName, "/", set.Body.Head.Turn)
		if r.told[key] {
			r.t.Fatalf("turn %s was told twice", key)
		}
		r.told[key] = true
	}
	for _, m := range set.Body.Messages {
		key := fmt.Sprint(channelName, "/", m.N)
		if was := r.people[key]; was == channel.Answered && m.State != was || was == channel.Lapsed {
			r.t.Fatalf("message %s was %s, and is %s", key, was, m.State)
		}
		r.people[key] = m.State
	}
	if rec.From != rec.To {
		r.moved(channelName, set.Agent, rec)
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
		r.t.Fatalf("#%s has %d holders after change %d: %v", channelName, holders, rec.Seq, r.states[channelName])
	}
	if rec.To == string(channel.Active) && rec.From == string(channel.Queued) {
		r.turns++
	}
}
