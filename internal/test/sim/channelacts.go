package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/read/view"
)

// The channels of a day. A foreign agent participates in the first. The second has a lead that does
// not participate, and a participant whose program reads no input while it runs.
var (
	channels = []string{"reviews", "ops"}
	members  = map[string][]string{"reviews": {"coder", "pm", outsider}, "ops": {"coder", noPromptAgent}}
	modes    = []string{"", "queue", "inject", "interrupt", "parallel"}
)

const (
	turnMax   = 20 // seconds
	waitMax   = 30 * time.Second
	silentFor = 5 // seconds
)

// configureChannels adds the channels to the configuration. One day in four has none.
func configureChannels(conf *config.Config, seed uint64) {
	if seed%4 == 3 {
		return
	}
	conf.TurnConfig = config.TurnConfig{
		DefaultTimeoutSeconds: turnMax, HumanInterruptMode: config.Inject, AnnounceTimeouts: true, AnnounceDisconnects: true,
		AutoDetectTurnEnd: seed%2 == 0, AutoDetectSilenceSeconds: silentFor,
	}
	conf.Channels = []config.Channel{
		{Name: "reviews", Agents: members["reviews"], HumanInterruptMode: config.Inject, MaxRounds: 2, WaitTimeout: waitMax},
		{Name: "ops", Agents: members["ops"], Lead: "pm", HumanInterruptMode: config.Interrupt, MaxRounds: 1, WaitTimeout: waitMax},
	}
}

func (w channelWorld) hasChannels() bool { return len(w.conf.Channels) > 0 }

// channelAct performs what a person or the foreign agent does in a channel. Target is the channel, or
// an agent in it.
func (w channelWorld) channelAct(a Act) {
	if !w.hasChannels() {
		return
	}
	order := func(what string, order func(ctx context.Context, e *app.App) (uint64, error)) {
		w.order(what, "", func(ctx context.Context, l *engineRun) (uint64, error) { return order(ctx, l.engine) })
	}
	switch a.Do {
	case "say":
		w.say(a.Target, a.Word)
	case "grant":
		order(a.String(), func(ctx context.Context, e *app.App) (uint64, error) {
			return e.Channels.Grant(ctx, byPerson, a.Word, a.Target, a.MS != 0)
		})
	case "skip":
		order(a.String(), func(ctx context.Context, e *app.App) (uint64, error) {
			return e.Channels.Skip(ctx, byPerson, a.Target, 0)
		})
	case "override":
		order(a.String(), func(ctx context.Context, e *app.App) (uint64, error) {
			return e.Channels.Override(ctx, byPerson, a.Target, a.MS != 0)
		})
	case "assign":
		order(a.String(), func(ctx context.Context, e *app.App) (uint64, error) {
			return e.Channels.Assign(ctx, byPerson, a.Word, a.Target)
		})
	case "remove":
		order(a.String(), func(ctx context.Context, e *app.App) (uint64, error) {
			return e.Channels.Unassign(ctx, byPerson, a.Word, a.Target)
		})
	case "disable":
		order(a.String(), func(ctx context.Context, e *app.App) (uint64, error) {
			return e.Channels.Disable(ctx, byPerson, a.Target)
		})
	case "enable":
		order(a.String(), func(ctx context.Context, e *app.App) (uint64, error) {
			return e.Channels.Enable(ctx, byPerson, a.Target)
		})
	case "poll":
		w.pollActions()
	case "leave":
		order(a.String(), func(ctx context.Context, e *app.App) (uint64, error) { return e.Channels.AgentLeft(ctx, outsider) })
	case "speak-late":
		w.speakLate(a.Target)
	}
}

// channelActs lists the acts of channels with what Target and Word refer to.
var channelActs = map[string]string{
	"say": "channel", "skip": "channel", "override": "channel", "speak-late": "channel",
	"grant": "agent in channel", "assign": "agent in channel", "remove": "agent in channel",
	"disable": "agent", "enable": "agent", "poll": "", "leave": "",
}

// drawChannelAct chooses the channel and the agent of an act.
func drawChannelAct(rnd *rand.Rand, a Act) Act {
	of, is := channelActs[a.Do]
	if !is {
		return a
	}
	a.Target, a.Word, a.MS = "", "", 0
	channel, agent := channels[rnd.IntN(len(channels))], agents[rnd.IntN(len(agents))]
	switch of {
	case "channel":
		a.Target = channel
	case "agent in channel":
		a.Target, a.Word = agent, channel
	case "agent":
		a.Target = agent
	}
	switch a.Do {
	case "say":
		a.Word = modes[rnd.IntN(len(modes))]
	case "grant", "override":
		a.MS = int64(rnd.IntN(2))
	}
	return a
}

// say has a person post a message and checks the confirmation.
func (w channelWorld) say(channel, mode string) {
	w.mu.Lock()
	name := w.record.word("sim", nil, "")
	w.mu.Unlock()
	w.order("say "+name+" in "+channel+" "+mode, "", func(ctx context.Context, l *engineRun) (uint64, error) {
		spoken, err := l.engine.Channels.Say(ctx, byPerson, channel, "please answer "+name, mode)
		if err != nil {
			return 0, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.acknowledgedAs(name, channel, spoken.N)
		return spoken.Seq, nil
	})
}

// acknowledgedAs records that the API confirmed a message. From then on it must be in the journal.
// The caller holds the lock.
func (w channelWorld) acknowledgedAs(name, channel string, n uint64) {
	word := w.record.words[name]
	word.must = true
	checks(w).check(saidOnce, word.times == 1, "%s was confirmed in #%s and is in the journal %d times", name, channel, word.times)
	at := fmt.Sprintf("message %d in #%s", n, channel)
	checks(w).check(saidOnce, n == 0 || word.at == at, "%s was confirmed as %s, and is %s in the journal", name, at, word.at)
}

// outsiderClient is the foreign agent's use of the API for channels. Its process is not part of the
// simulation, so it survives every crash.
type outsiderClient struct {
	polling     bool            // a poll is in progress
	polls       uint64          // number of polls, which also seeds the random numbers of each poll
	answered    map[string]bool // keys of actions that it has answered
	lastMessage view.Speech     // the last message that it posted
}

// pollActions has the foreign agent fetch its pending actions and answer them.
func (w channelWorld) pollActions() {
	l := w.alive()
	w.mu.Lock()
	defer w.mu.Unlock()
	if l == nil || w.outsiderClient.polling {
		return
	}
	w.outsiderClient.polling = true
	w.outsiderClient.polls++
	rnd := rand.New(rand.NewPCG(w.seed, w.outsiderClient.polls))
	w.goroutines.Go(func() {
		w.pollAndAnswer(l.engine, rnd)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.outsiderClient.polling = false
	})
}

func (w channelWorld) pollAndAnswer(e *app.App, rnd *rand.Rand) {
	ctx := context.Background()
	_, _ = e.Channels.AgentReady(ctx, outsider) // an error says that it is ready already
	if e.Channels.AgentBeat(ctx, outsider) != nil {
		return
	}
	errands, err := e.Channels.AgentActions(ctx, outsider, 0)
	if err != nil {
		return
	}
	for _, action := range errands {
		seq, err := e.Channels.AgentConfirm(ctx, outsider, action.Key)
		if err != nil {
			return
		}
		w.mu.Lock()
		checks(w).checkAnswered("confirmation of "+action.Key, "", seq)
		w.recordAction(action)
		again := w.outsiderClient.answered[action.Key]
		w.outsiderClient.answered[action.Key] = true
		w.mu.Unlock()
		if !again && action.Do != string(channel.StopWork) {
			w.answerAction(e, action, rnd)
		}
	}
}

// recordAction records an action that the foreign agent received; the caller holds the lock.
func (w channelWorld) recordAction(v view.ActionView) {
	e := deliveredAction{channel: v.Channel, turn: v.Turn, known: true}
	if v.Turn == 0 {
		e.re = v.Message
	}
	w.record.deliveredAction[v.Key] = e
	if v.Do == string(channel.TellTurn) {
		w.checkDelivered(outsider, deliveredAction{channel: v.Channel, turn: v.Turn}, "", false, v.Text)
	}
}

// answerAction has the foreign agent answer one action in one of several ways.
func (w channelWorld) answerAction(e *app.App, action view.ActionView, rnd *rand.Rand) {
	ctx := context.Background()
	how := []string{"well", "well", "well", "well", "passes", "waits", "mute", "unfinished", "leaves", "in-pieces"}[rnd.IntN(10)]
	if w.isWellBehaved() {
		how = "well"
	}
	s := view.Speech{Channel: action.Channel, Agent: outsider, Turn: action.Turn, Re: action.Message, Complete: true, Ended: true}
	if action.Turn != 0 {
		s.Re = 0
	}
	w.mu.Lock()
	w.outsiderClient.lastMessage = s
	if how != "mute" && how != "waits" && how != "unfinished" {
		w.record.endsTurn(action.Key)
	}
	w.mu.Unlock()
	switch how {
	case "passes":
		_, _ = e.Channels.AgentPass(ctx, s.Channel, outsider, s.Turn)
	case "waits":
		if _, err := e.Channels.AgentWait(ctx, s.Channel, outsider, s.Turn, "a build"); err == nil && rnd.IntN(2) == 0 {
			_, _ = e.Channels.AgentGoesOn(ctx, s.Channel, outsider, s.Turn)
		}
	case "mute":
	case "leaves":
		_, _ = e.Channels.AgentLeft(ctx, outsider)
	case "unfinished":
		s.Complete = false
		w.post(e, s, action.Key)
	case "in-pieces":
		first := s
		first.Complete, first.Ended = false, false
		w.post(e, first, action.Key)
		w.post(e, s, action.Key)
	default:
		w.post(e, s, action.Key)
	}
}

// post has the foreign agent post a message. A message that was refused may or may not be in the
// journal.
func (w channelWorld) post(e *app.App, s view.Speech, key string) {
	w.mu.Lock()
	name := w.record.word(outsider, nil, key)
	w.mu.Unlock()
	s.Text = "I say " + name
	seq, err := e.Channels.AgentSaid(context.Background(), s)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.notef("%s: %v", name, err)
		return
	}
	checks(w).checkAnswered("said "+name, "", seq)
	w.acknowledgedAs(name, s.Channel, 0)
}

// speakLate has the foreign agent post a message for a turn that has ended, or that it never had.
func (w channelWorld) speakLate(channelName string) {
	l := w.alive()
	if l == nil {
		return
	}
	w.mu.Lock()
	s := w.outsiderClient.lastMessage
	w.mu.Unlock()
	if s.Channel != channelName || s.Turn == 0 {
		s = view.Speech{Channel: channelName, Agent: outsider, Turn: 1 << 40, Complete: true}
	}
	w.mu.Lock()
	c := w.truth.Channels.ByID[channel.ChannelID(channelName)]
	over := c == nil || c.Head.Turn != s.Turn
	w.mu.Unlock()
	if over {
		w.goroutines.Go(func() { w.post(l.engine, s, "") })
	}
}

func (w channelWorld) isWellBehaved() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wellBehaved
}

// checkLastMessages runs at the end of every day. People post a last message in each channel, all
// agents answer properly, and every participant must get its turn.
func (w channelWorld) checkLastMessages() {
	if !w.hasChannels() || w.failed() {
		return
	}
	w.mu.Lock()
	w.wellBehaved = true
	w.mu.Unlock()
	for _, name := range agents {
		w.channelAct(Act{Do: "enable", Target: name})
		w.settle()
	}
	for _, channel := range channels {
		for _, name := range members[channel] {
			w.channelAct(Act{Do: "assign", Target: name, Word: channel})
			w.settle()
		}
	}
	w.passTurns(8) // finish the messages of the day
	before := map[string]int{}
	w.mu.Lock()
	maps.Copy(before, w.record.turns)
	w.mu.Unlock()
	for _, channel := range channels {
		w.channelAct(Act{Do: "say", Target: channel, Word: "queue"})
		w.settle()
	}
	w.passTurns(20)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, channelName := range channels {
		if w.failure != nil {
			return
		}
		c := w.truth.Channels.ByID[channel.ChannelID(channelName)]
		open := w.record.openFor(channelName)
		checks(w).check(messageKept, len(open) == 0, "in #%s messages %v have no answer although every agent answers: %+v", channelName,
			open, c.Head)
		checks(w).check(turnComes, c.Head.Holder == "" && c.Head.Aside.Message == 0,
			"in #%s a turn does not end although every agent answers: %+v", channelName, c.Head)
		for _, name := range c.Queue() {
			seat := string(name) + " in " + channelName
			checks(w).check(turnComes, w.record.turns[seat] > before[seat],
				"%s was queued and had a message to answer, but got no turn: %+v", seat, c.Head)
		}
		for _, name := range members[channelName] {
			queued := slices.Contains(c.Queue(), channel.AgentID(name)) || string(c.Head.Rests) == name
			checks(w).check(turnComes, queued, "%s was assigned to #%s and enabled, but is not queued: %+v", name, channelName,
				c.Participants[channel.AgentID(name)])
		}
	}
}

// passTurns lets the agents take turns, including the foreign one.
func (w channelWorld) passTurns(times int) {
	for range times {
		if w.failed() {
			return
		}
		w.pollActions()
		w.settle()
		w.pass(8 * time.Second)
		w.settle()
	}
}
