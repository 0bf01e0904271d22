package app

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/tools"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/team"
)

// TestRandomActs lets agents end their turns, pass, wait and ask by tool calls, in random order
// with their output. People act at random times, and the engine crashes at random actions. No turn
// ends twice. No text of an answer whose turn ended by a call is late, unless another participant
// ended that turn. In the end nothing hangs. To repeat a run: -run 'TestRandomActs/seed=7$'.
func TestRandomActs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for seed := range talkSeeds() {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomActs(t, dir, rand.New(rand.NewPCG(seed, 11))) })
		})
	}
}

// acts returns the session of an agent that acts by calls. Its random choices were made before.
// With mixes, some answers also end the turn in text, before the answer has ended.
func (h *toolCaller) acts(t *testing.T, whims []int, mixes bool) func(*fakeSession) {
	ends := ""
	if mixes {
		ends = " TURN_COMPLETE"
	}
	return func(s *fakeSession) {
		for n := 0; ; n++ {
			_, cancel, ok := s.next(time.Hour)
			if !ok {
				s.say("stop ok")
				return
			}
			whim := whims[(n*7+len(s.id)*3+int(s.read()))%len(whims)]
			pause := func() { s.lasts(time.Duration(whim%4) * 400 * time.Millisecond) }
			if cancel {
				s.say("listening %d", s.read())
				continue
			}
			e, c := h.of(s)
			ctx := t.Context()
			if whim%3 != 0 {
				s.say("%s begins %d", c.Agent, n)
			}
			pause()
			switch whim % 8 {
			case 0, 1:
				s.calls("turn_complete")
				_, _ = e.Tools.ActTurnComplete(ctx, c, "", "") // whatever the result, the call must have no other effect
				pause()
				_, _ = e.Tools.ActTurnComplete(ctx, c, "", "")
			case 2:
				_, _ = e.Tools.ActPass(ctx, c, "") // without any text in the output
			case 3:
				s.calls("wait")
				_, _ = e.Tools.ActWait(ctx, c, "", "for somebody", 20*time.Second)
				_, _ = h.engine.Load().Tools.ActTurnComplete(ctx, c, "", "done after waiting")
			case 4:
				s.calls("ask_human")
				_, _ = e.Tools.ActAskHuman(ctx, c, tools.AgentQuestion{Text: fmt.Sprintf("which %d?", n)}, 15*time.Second)
				_, _ = h.engine.Load().Tools.ActTurnComplete(ctx, c, "", "")
			case 5:
				_, _ = e.Tools.ActSay(ctx, c, "", fmt.Sprintf("%s half way %d", c.Agent, n))
				s.say("%s ends %d%s", c.Agent, n, ends)
				s.say("listening %d", s.read())
				continue
			case 6:
				_, _ = e.Tools.ActTurnComplete(ctx, c, "reviews", fmt.Sprintf("%s done %d", c.Agent, n))
				s.say("and %s says so%s", c.Agent, ends)
				s.say("listening %d", s.read())
				continue
			default:
				s.say("%s dies %d", c.Agent, n)
				s.exit(3)
				return
			}
			pause()
			s.say("%s is done %d", c.Agent, n)
			s.say("listening %d", s.read())
		}
	}
}

func randomActs(t *testing.T, dir string, rnd *rand.Rand) {
	agents, h := []string{"ada", "bob"}, &toolCaller{}
	b := newBubble(t, dir, agents...)
	defer b.end()
	b.inOneChannel(agents...)
	var whims []int
	for range 64 {
		whims = append(whims, rnd.IntN(240))
	}
	mixes := rnd.IntN(2) == 0
	b.host.play = h.acts(t, whims, mixes)
	revive := func(last int, undone bool) {
		b.discardEngine()
		b.open(last, undone)
		h.engine.Store(b.engine)
		b.run()
		b.settle()
	}
	for n := range 40 {
		if b.engine == nil || b.crashPoint.isDead() {
			last := 0
			if rnd.IntN(2) == 0 {
				last = 1 + rnd.IntN(60)
			}
			revive(last, rnd.IntN(2) == 0)
			continue
		}
		ctx := t.Context()
		switch rnd.IntN(10) {
		case 0, 1, 2, 3:
			_, _ = b.engine.Channels.Say(ctx, human, "reviews", fmt.Sprintf("message %d", n),
				[]string{"queue", "inject", "interrupt", "parallel"}[rnd.IntN(4)])
		case 4:
			_, _ = b.engine.Channels.Skip(ctx, human, "reviews", 0)
		case 5:
			_, _ = b.engine.Channels.Override(ctx, human, "reviews", rnd.IntN(2) == 0)
		case 6:
			if open, err := b.engine.Questions.Questions(ctx); err == nil && len(open) > 0 {
				_, _ = b.engine.Questions.AnswerQuestion(ctx, human, open[0].ID, view.QuestionAnswer{Text: "that one"})
			}
		default:
			b.after(time.Duration(rnd.IntN(15_000)) * time.Millisecond)
		}
		b.settle()
	}
	if b.engine == nil || b.crashPoint.isDead() {
		revive(0, false)
	}
	b.checkBecomesIdle(agents, []string{"reviews"})
	b.turnsEndOnce(mixes)
}

// oneTurn is the history of one turn.
type oneTurn struct {
	noted       bool // a call asked for its end
	interrupted bool
	end         string
	late        []string
}

// turnsEndOnce checks the history: each turn ended once, by one row, and no other agent had it
// meanwhile. If the end of a turn was recorded together with its answer, no text of the answer was
// late.
func (b *bubble) turnsEndOnce(mixes bool) {
	b.t.Helper()
	holder, number, turns := "", uint64(0), map[uint64]*oneTurn{}
	for _, ch := range b.history() {
		if ch.Entity != "channel/reviews" || ch.Machine != "turn" {
			continue
		}
		body, err := team.BodyOf(ch.Data)
		set, is := change.As[channel.Set](body), turns[number]
		if set == nil {
			b.t.Fatalf("decode change %d: %v", ch.Seq, err)
		}
		if post := set.Body.Post; post != nil && post.Kind == channel.OfLate && turns[post.Turn] != nil {
			turns[post.Turn].late = append(turns[post.Turn].late, set.Text)
		}
		switch {
		case ch.Row == "T4":
			if holder != "" {
				b.t.Errorf("%d: the turn was granted while %s had it", ch.Seq, holder)
			}
			holder, number = string(set.Agent), set.Body.Head.Turn
			turns[number] = &oneTurn{}
		case ch.Row == "N8":
			is.noted = true
		case ch.Row == "T17":
			is.interrupted = true
		case ch.To == "ACTIVE", ch.To == "WAITING", ch.From != "ACTIVE" && ch.From != "WAITING":
		case holder != string(set.Agent):
			b.t.Errorf("%d: %s ends by %s a turn of %q", ch.Seq, set.Agent, ch.Row, holder)
		default:
			holder, is.end = "", ch.Row
		}
	}
	for n, is := range turns {
		if is.noted && !mixes && !is.interrupted && (is.end == "T7" || is.end == "T8" || is.end == "T22") && len(is.late) > 0 {
			b.t.Errorf("turn %d ended with its answer by %s, but this text of it is late: %q", n, is.end, is.late)
		}
	}
}
