package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/controller"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/view"
)

// The channels of a day. In the first a foreign agent is a member; the second has a lead who is
// none, and a member that is told nothing while it runs.
var (
	channels = []string{"reviews", "ops"}
	members  = map[string][]string{"reviews": {"coder", "pm", outsider}, "ops": {"coder", deaf}}
	modes    = []string{"", "queue", "inject", "interrupt", "parallel"}
)

const (
	turnMax   = 20 // seconds
	waitMax   = 30 * time.Second
	silentFor = 5 // seconds
)

// inChannels puts a day's team into its channels. One day in four has none.
func inChannels(conf *config.Config, seed uint64) {
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

func (w *world) hasChannels() bool { return len(w.conf.Channels) > 0 }

// deed is something that people do in a channel. Whom is the channel, or an agent in it.
func (w *world) deed(a Act) {
	if !w.hasChannels() {
		return
	}
	order := func(what string, order func(ctx context.Context, e *controller.Supervisor) (uint64, error)) {
		w.give(what, "", func(ctx context.Context, l *life) (uint64, error) { return order(ctx, l.engine) })
	}
	switch a.Do {
	case "say":
		w.say(a.Whom, a.Word)
	case "grant":
		order(a.String(), func(ctx context.Context, e *controller.Supervisor) (uint64, error) {
			return e.Grant(ctx, byPerson, a.Word, a.Whom, a.MS != 0)
		})
	case "skip":
		order(a.String(), func(ctx context.Context, e *controller.Supervisor) (uint64, error) {
			return e.Skip(ctx, byPerson, a.Whom, 0)
		})
	case "override":
		order(a.String(), func(ctx context.Context, e *controller.Supervisor) (uint64, error) {
			return e.Override(ctx, byPerson, a.Whom, a.MS != 0)
		})
	case "assign":
		order(a.String(), func(ctx context.Context, e *controller.Supervisor) (uint64, error) {
			return e.Assign(ctx, byPerson, a.Word, a.Whom)
		})
	case "remove":
		order(a.String(), func(ctx context.Context, e *controller.Supervisor) (uint64, error) {
			return e.Unassign(ctx, byPerson, a.Word, a.Whom)
		})
	case "disable":
		order(a.String(), func(ctx context.Context, e *controller.Supervisor) (uint64, error) {
			return e.Disable(ctx, byPerson, a.Whom)
		})
	case "enable":
		order(a.String(), func(ctx context.Context, e *controller.Supervisor) (uint64, error) {
			return e.Enable(ctx, byPerson, a.Whom)
		})
	case "visit":
		w.visit()
	case "leave":
		order(a.String(), func(ctx context.Context, e *controller.Supervisor) (uint64, error) { return e.AgentLeft(ctx, outsider) })
	case "mumble":
		w.mumble(a.Whom)
	}
}

// parleys are the deeds of channels, with whom they are about.
var parleys = map[string]string{
	"say": "channel", "skip": "channel", "override": "channel", "mumble": "channel",
	"grant": "agent in channel", "assign": "agent in channel", "remove": "agent in channel",
	"disable": "agent", "enable": "agent", "visit": "", "leave": "",
}

// drawDeed fills in whom a deed of channels is about.
func drawDeed(rnd *rand.Rand, a Act) Act {
	of, is := parleys[a.Do]
	if !is {
		return a
	}
	a.Whom, a.Word, a.MS = "", "", 0
	channel, agent := channels[rnd.IntN(len(channels))], agents[rnd.IntN(len(agents))]
	switch of {
	case "channel":
		a.Whom = channel
	case "agent in channel":
		a.Whom, a.Word = agent, channel
	case "agent":
		a.Whom = agent
	}
	switch a.Do {
	case "say":
		a.Word = modes[rnd.IntN(len(modes))]
	case "grant", "override":
		a.MS = int64(rnd.IntN(2))
	}
	return a
}

// say has a person say something, and looks at what was taken.
func (w *world) say(channel, mode string) {
	w.mu.Lock()
	name := w.book.word("sim", nil, "")
	w.mu.Unlock()
	w.give("say "+name+" in "+channel+" "+mode, "", func(ctx context.Context, l *life) (uint64, error) {
		spoken, err := l.engine.Say(ctx, byPerson, channel, "what about "+name, mode)
		if err != nil {
			return 0, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.taken(name, channel, spoken.N)
		return spoken.Seq, nil
	})
}

// taken records that a speaker was told that the message is in the journal; the caller holds the
// lock.
func (w *world) taken(name, channel string, n uint64) {
	word := w.book.words[name]
	word.must = true
	w.check(saidOnce, word.times == 1, "%s was taken in #%s, and is in the journal %d times", name, channel, word.times)
	at := fmt.Sprintf("message %d in #%s", n, channel)
	w.check(saidOnce, n == 0 || word.at == at, "%s was taken as %s, and the journal has it as %s", name, at, word.at)
}

// guest is the foreign agent's part in channels, of which nothing runs here. It lives on
// whatever becomes of us.
type guest struct {
	here  bool            // it is at it
	calls uint64          // so many times it came
	did   map[string]bool // actions
	last  view.Speech     // whatever it did last
}

// visit has the foreign agent come and fetch what it is to be told.
func (w *world) visit() {
	l := w.alive()
	w.mu.Lock()
	defer w.mu.Unlock()
	if l == nil || w.guest.here {
		return
	}
	w.guest.here = true
	w.guest.calls++
	rnd := rand.New(rand.NewPCG(w.seed, w.guest.calls))
	w.plays.Go(func() {
		w.fetch(l.engine, rnd)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.guest.here = false
	})
}

func (w *world) fetch(e *controller.Supervisor, rnd *rand.Rand) {
	ctx := context.Background()
	_, _ = e.AgentReady(ctx, outsider) // that it is already is an answer
	if e.AgentBeat(ctx, outsider) != nil {
		return
	}
	errands, err := e.AgentActions(ctx, outsider, 0)
	if err != nil {
		return
	}
	for _, errand := range errands {
		seq, err := e.AgentConfirm(ctx, outsider, errand.Key)
		if err != nil {
			return
		}
		w.mu.Lock()
		w.checkAnswered("told "+errand.Key, "", seq)
		w.fetched(errand)
		again := w.guest.did[errand.Key]
		w.guest.did[errand.Key] = true
		w.mu.Unlock()
		if !again && errand.Do != string(channel.StopWork) {
			w.answers(e, errand, rnd)
		}
	}
}

// fetched notes what the foreign agent was given; the caller holds the lock.
func (w *world) fetched(v view.ActionView) {
	e := errand{channel: v.Channel, turn: v.Turn, known: true}
	if v.Turn == 0 {
		e.re = v.Message
	}
	w.book.errand[v.Key] = e
	if v.Do == string(channel.TellTurn) {
		w.gives(outsider, errand{channel: v.Channel, turn: v.Turn}, "", false, v.Text)
	}
}

// answers is the foreign agent doing something about what it was told.
func (w *world) answers(e *controller.Supervisor, errand view.ActionView, rnd *rand.Rand) {
	ctx := context.Background()
	how := []string{"well", "well", "well", "well", "passes", "waits", "mute", "unfinished", "leaves", "in-pieces"}[rnd.IntN(10)]
	if w.isEvening() {
		how = "well"
	}
	s := view.Speech{Channel: errand.Channel, Agent: outsider, Turn: errand.Turn, Re: errand.Message, Complete: true, Ended: true}
	if errand.Turn != 0 {
		s.Re = 0
	}
	w.mu.Lock()
	w.guest.last = s
	if how != "mute" && how != "waits" && how != "unfinished" {
		w.book.givesUp(errand.Key)
	}
	w.mu.Unlock()
	switch how {
	case "passes":
		_, _ = e.AgentPass(ctx, s.Channel, outsider, s.Turn)
	case "waits":
		if _, err := e.AgentWait(ctx, s.Channel, outsider, s.Turn, "a build"); err == nil && rnd.IntN(2) == 0 {
			_, _ = e.AgentGoesOn(ctx, s.Channel, outsider, s.Turn)
		}
	case "mute":
	case "leaves":
		_, _ = e.AgentLeft(ctx, outsider)
	case "unfinished":
		s.Complete = false
		w.speaks(e, s, errand.Key)
	case "in-pieces":
		first := s
		first.Complete, first.Ended = false, false
		w.speaks(e, first, errand.Key)
		w.speaks(e, s, errand.Key)
	default:
		w.speaks(e, s, errand.Key)
	}
}

// speaks has the foreign agent say something. What is answered with no may be there or not.
func (w *world) speaks(e *controller.Supervisor, s view.Speech, key string) {
	w.mu.Lock()
	name := w.book.word(outsider, nil, key)
	w.mu.Unlock()
	s.Text = "I say " + name
	seq, err := e.AgentSaid(context.Background(), s)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.came("%s: %v", name, err)
		return
	}
	w.checkAnswered("said "+name, "", seq)
	w.taken(name, s.Channel, 0)
}

// mumble has the foreign agent speak under a turn that is over, or that it never had.
func (w *world) mumble(channelName string) {
	l := w.alive()
	if l == nil {
		return
	}
	w.mu.Lock()
	s := w.guest.last
	w.mu.Unlock()
	if s.Channel != channelName || s.Turn == 0 {
		s = view.Speech{Channel: channelName, Agent: outsider, Turn: 1 << 40, Complete: true}
	}
	w.mu.Lock()
	c := w.truth.Channels.ByID[channel.ChannelID(channelName)]
	over := c == nil || c.Head.Turn != s.Turn
	w.mu.Unlock()
	if over {
		w.plays.Go(func() { w.speaks(l.engine, s, "") })
	}
}

func (w *world) isEvening() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.night
}

// lastWords is the same at the end of every day: with nothing in the way people say a last
// thing in each channel, everybody is well-mannered, and it goes round.
func (w *world) lastWords() {
	if !w.hasChannels() || w.failed() {
		return
	}
	w.mu.Lock()
	w.night = true
	w.mu.Unlock()
	for _, name := range agents {
		w.deed(Act{Do: "enable", Whom: name})
		w.settle()
	}
	for _, channel := range channels {
		for _, name := range members[channel] {
			w.deed(Act{Do: "assign", Whom: name, Word: channel})
			w.settle()
		}
	}
	w.goRound(8) // what is left of the day
	before := map[string]int{}
	w.mu.Lock()
	for seat, n := range w.book.turns {
		before[seat] = n
	}
	w.mu.Unlock()
	for _, channel := range channels {
		w.deed(Act{Do: "say", Whom: channel, Word: "queue"})
		w.settle()
	}
	w.goRound(20)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, channelName := range channels {
		if w.failure != nil {
			return
		}
		c := w.truth.Channels.ByID[channel.ChannelID(channelName)]
		open := w.book.openFor(channelName)
		w.check(messageKept, len(open) == 0, "in #%s nothing is in the way, and messages %v are not answered: %+v", channelName, open, c.Head)
		w.check(turnComes, c.Head.Holder == "" && c.Head.Aside.Message == 0, "in #%s a turn does not end: %+v", channelName, c.Head)
		for _, name := range c.Queue() {
			seat := string(name) + " in " + channelName
			w.check(turnComes, w.book.turns[seat] > before[seat], "%s was queued, something was said that it had to answer, and it had no turn: %+v", seat, c.Head)
		}
		for _, name := range members[channelName] {
			queued := slices.Contains(c.Queue(), channel.AgentID(name)) || string(c.Head.Rests) == name
			w.check(turnComes, queued, "%s was assigned to #%s and enabled, and is in no line: %+v", name, channelName, c.Participants[channel.AgentID(name)])
		}
	}
}

// goRound lets the agents talk, the foreign one among them.
func (w *world) goRound(times int) {
	for range times {
		if w.failed() {
			return
		}
		w.visit()
		w.settle()
		w.pass(8 * time.Second)
		w.settle()
	}
}
