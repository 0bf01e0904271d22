package app

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/team"
)

// talkSeeds returns the number of conversations that are played: some in every test, many with
// FAIRLEAD_LONG=1.
func talkSeeds() uint64 { return randomSeeds() / 4 }

// TestRandomTalks plays random conversations in two channels, with random requests of people,
// crashing agents, and a supervisor that crashes at random acts. Nothing is delivered twice, every
// message is stored once, at most one agent has the turn, and nothing hangs in the end. To repeat a
// run: -run 'TestRandomTalks/seed=7$'.
func TestRandomTalks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for seed := range talkSeeds() {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomTalk(t, dir, rand.New(rand.NewPCG(seed, 5))) })
		})
	}
}

// whims are the random choices of agents, made in advance because sessions run in their own
// goroutines.
type whims struct {
	promptLedger *promptLedger
	of           []int
}

func (h *whims) talks(s *fakeSession) {
	agent := agentIn(s.id)
	if s.kind != "turn" {
		s.lasts(7 * time.Second)
		s.say("stop ok")
		return
	}
	for {
		text, cancel, ok := s.next(time.Hour)
		if !ok {
			s.say("stop ok")
			return
		}
		if cancel {
			s.say("listening %d", s.read())
			continue
		}
		n := h.promptLedger.tell(agent, text)
		whim := h.of[(n*7+len(agent))%len(h.of)]
		s.lasts(time.Duration(whim%5) * 700 * time.Millisecond)
		switch whim % 11 {
		case 0:
			h.promptLedger.say(s, "%s dies %d", agent, n)
			s.exit(3)
			return
		case 1:
			h.promptLedger.say(s, "%s waits %d TURN_WAIT", agent, n)
		case 2:
			h.promptLedger.say(s, "TURN_PASS")
		case 3:
			h.promptLedger.say(s, "%s forgets %d", agent, n)
		case 4:
			s.say("asks May I?")
			s.lasts(3 * time.Second)
			s.say("deed")
			h.promptLedger.say(s, "%s did %d TURN_COMPLETE", agent, n)
		case 5:
			h.promptLedger.say(s, "%s goes %d TURN_COMPLETE", agent, n)
			s.say("stop ok")
			return
		case 6:
			h.promptLedger.say(s, "%s begins %d", agent, n)
			if more, cancel, some := s.next(20 * time.Second); some && !cancel {
				h.promptLedger.tell(agent, more)
			}
			h.promptLedger.say(s, "%s ends %d TURN_COMPLETE", agent, n)
		default:
			h.promptLedger.say(s, "%s says %d TURN_COMPLETE", agent, n)
		}
		s.say("listening %d", s.read())
	}
}

func randomTalk(t *testing.T, dir string, rnd *rand.Rand) {
	agents := []string{"ada", "bob", "eve"}
	b := newBubble(t, dir, agents...)
	defer b.end()
	b.inOneChannel("ada", "bob")
	b.conf.Channels[0].Lead = "eve"
	b.conf.Channels = append(b.conf.Channels, config.Channel{
		Name: "ops", Agents: []string{"bob", "eve"}, HumanInterruptMode: config.Queue, MaxRounds: 1, WaitTimeout: time.Minute,
	})
	h := &whims{promptLedger: newPromptLedger()}
	for range 64 {
		h.of = append(h.of, rnd.IntN(110))
	}
	b.host.play = h.talks
	channels, modes := []string{"reviews", "ops"}, []string{"queue", "inject", "interrupt", "parallel"}
	for n := range 60 {
		if b.engine == nil || b.crashPoint.isDead() {
			b.discardEngine()
			last := 0
			if rnd.IntN(2) == 0 {
				last = 1 + rnd.IntN(50)
			}
			b.open(last, rnd.IntN(2) == 0)
			b.run()
			b.settle()
			continue
		}
		ctx := t.Context()
		agent, channel := agents[rnd.IntN(len(agents))], channels[rnd.IntN(len(channels))]
		switch rnd.IntN(16) {
		case 0, 1, 2, 3:
			_, _ = b.engine.Channels.Say(ctx, human, channel, fmt.Sprintf("message %d", n), modes[rnd.IntN(len(modes))])
		case 4:
			_, _ = b.engine.Channels.Grant(ctx, human, channel, agent, rnd.IntN(2) == 0)
		case 5:
			_, _ = b.engine.Channels.Skip(ctx, human, channel, 0)
		case 6:
			_, _ = b.engine.Channels.Override(ctx, human, channel, rnd.IntN(2) == 0)
		case 7:
			_, _ = b.engine.Channels.Assign(ctx, human, channel, agent)
		case 8:
			_, _ = b.engine.Channels.Unassign(ctx, human, channel, agent)
		case 9:
			_, _ = b.engine.Channels.Disable(ctx, human, agent)
		case 10:
			_, _ = b.engine.Channels.Enable(ctx, human, agent)
		case 11:
			if ids := b.host.running(); len(ids) > 0 {
				b.host.session(ids[rnd.IntN(len(ids))]).finish(session.Exit{Lost: rnd.IntN(3) == 0, Why: "killed"})
			}
		case 12:
			_, _ = b.engine.Agents.Command(ctx, human, agent, "run_once", "")
		case 13:
			_, _ = b.engine.Agents.Hold(ctx, human, rnd.IntN(3) == 0, "")
		default:
			b.after(time.Duration(rnd.IntN(20_000)) * time.Millisecond)
		}
		b.settle()
	}
	b.checkBecomesIdle(agents, channels)
	h.promptLedger.once(b)
}

// checkBecomesIdle lets all agents continue until everything is answered.
func (b *bubble) checkBecomesIdle(agents, channels []string) {
	t := b.t
	t.Helper()
	b.restartIfDead()
	if _, err := b.engine.Agents.Hold(t.Context(), human, false, ""); err != nil {
		b.restartIfDead()
		_, _ = b.engine.Agents.Hold(t.Context(), human, false, "")
	}
	b.restartIfDead()
	for _, agent := range agents {
		_, _ = b.engine.Channels.Enable(t.Context(), human, agent)
	}
	for range 240 { // waits expire after five minutes each
		b.after(10 * time.Second)
		b.restartIfDead()
	}
	if err := b.engine.Loop.View(t.Context(), func(tm *team.Team) {
		for _, id := range channels {
			c := tm.Channels.ByID[channel.ChannelID(id)]
			if c.Head.Holder != "" || c.Head.Aside.Message != 0 {
				t.Errorf("%s still has the turn in %s: %+v", c.Head.Holder, id, c.Head)
			}
			for _, todo := range tm.ChannelActions(id, b.engine.Loop.Now()) {
				t.Errorf("pending in %s: %+v", id, todo)
			}
		}
		for name, a := range tm.Agents {
			if a.Session.AnswerPending() {
				t.Errorf("%s still answers %+v", name, a.Session.Delivery)
			}
		}
	}); err != nil {
		t.Error(err)
	}
	if err := b.engineTeamIsReplayed(); err != nil {
		t.Error(err)
	}
}
