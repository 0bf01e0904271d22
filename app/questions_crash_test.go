package app

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/question"
)

// retryAnswer answers an open question until the answer is known to be accepted.
func (b *bubble) retryAnswer(call string, a view.QuestionAnswer) {
	b.t.Helper()
	for range 3 {
		b.restartIfDead()
		id := ""
		for _, q := range b.replayed().Questions.Questions {
			switch {
			case q.Call != call || q.Session != "coder-1":
			case q.State == question.Open:
				id = q.ID
			default:
				return // answered already
			}
		}
		if id == "" {
			continue
		}
		if _, err := b.engine.Questions.AnswerQuestion(b.t.Context(), human, id, a); err == nil {
			b.settle()
			return
		}
	}
	b.t.Errorf("%s was never answered", call)
}

const lookCall = `Bash {"command":"git status"}`

// questionScenario plays a session that asks, independent of crashes. A rule answers one question,
// a person one, and a timeout one.
func questionScenario(b *bubble) {
	pass := func(d time.Duration) {
		for range 4 {
			b.after(d / 4)
			b.restartIfDead()
		}
	}
	b.retryCommand("coder", "run_once", "first order")
	pass(8 * time.Second)
	b.retryAnswer("make", view.QuestionAnswer{Allow: true})
	pass(2 * time.Minute)
}

// TestQuestionCrashAtEveryStep crashes the engine at every act. Every question is asked once and
// has one answer in the journal, and its program receives exactly that answer.
func TestQuestionCrashAtEveryStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	play := func(t *testing.T, c cut) (acts int) {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t, dir, "coder")
			defer b.end()
			r := &replies{}
			asks := r.asksFor(lookCall, makeCall, `Bash {"command":"make clean"}`)
			b.conversing(config.ResumeInterrupted, func(s *fakeSession) {
				s.say("usage 10 5 0.5")
				asks(s)
			})
			b.agent("coder").Permissions = config.Permissions{Allow: []string{"Bash(git status)"}, Timeout: time.Minute}
			b.open(c.last, c.undone)
			first := b.crashPoint
			b.run()
			questionScenario(b)
			b.checkConsistent()
			b.askedOnce()
			b.checkReceived(r, "coder-1", "yes", "yes", "no")
			if past := b.replayed().Agents["coder"].Past; len(past) == 0 || past[0].Denied != 1 || len(past[0].DeniedWhat) != 1 ||
				past[0].Usage.InputTokens != 10 {
				t.Errorf("the session is %+v", past)
			}
			acts = first.count()
		})
		return acts
	}
	acts := play(t, cut{})
	if acts < 20 {
		t.Fatalf("only %d acts; the scenario must do more", acts)
	}
	t.Logf("%d acts", acts)
	everyCut(t, acts, func(t *testing.T, c cut) { play(t, c) })
}

// askedOnce checks that no question is in the journal twice, that none was answered twice, and that
// all have ended.
func (b *bubble) askedOnce() {
	b.t.Helper()
	rows := map[string]string{}
	for _, ch := range b.history() {
		if id, is := strings.CutPrefix(ch.Entity, "question/"); is && strings.HasPrefix(id, "q") {
			rows[id] += ch.Row + " "
		}
	}
	for id, took := range rows {
		switch took {
		case "Q2 Q6 ", "Q2 Q5 ", "Q1 Q3 Q6 ", "Q1 Q3 Q5 ", "Q1 Q4 Q6 ", "Q1 Q4 Q5 ", "Q1 Q2 Q6 ", "Q1 Q2 Q5 ", "Q1 Q5 ":
		default:
			b.t.Errorf("%s has the rows %s", id, took)
		}
	}
	seen := map[string]string{}
	for id, q := range b.replayed().Questions.Questions {
		if before, again := seen[q.Session+" "+q.Ask]; again {
			b.t.Errorf("%s and %s are the same question", before, id)
		}
		seen[q.Session+" "+q.Ask] = id
	}
}

// TestQuestionRandomOrders applies random crashes, answers of people, timeouts, saved answers,
// changed settings, process conflicts and rate limits.
func TestQuestionRandomOrders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for seed := range randomSeeds() / 3 { // its days are long
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { questionDay(t, dir, rand.New(rand.NewPCG(seed, 8))) })
		})
	}
}

func questionDay(t *testing.T, dir string, rnd *rand.Rand) {
	b := newBubble(t, dir, "coder", "pm")
	defer b.end()
	r := &replies{}
	fates := make([]int, 256) // chosen here, because sessions run in their own goroutines
	for i := range fates {
		fates[i] = rnd.IntN(1 << 20)
	}
	b.conversing(config.ResumeInterrupted, func(s *fakeSession) {
		_, n, _ := sessions.NameParts(s.id)
		lot := fates[int(n)%len(fates)]
		calls := []string{lookCall, makeCall, fmt.Sprintf(`Bash {"command":"make %d"}`, lot%3), `Write {"file_path":"a.txt"}`}
		r.asksFor(calls[lot%4], calls[lot/4%4], calls[lot/16%4])(s)
		if lot%7 == 0 {
			s.say("limited %d slow down", lot%90)
			s.say("stop rate_limited")
		}
	})
	for i := range b.conf.Agents {
		b.conf.Agents[i].Permissions = config.Permissions{Allow: []string{"Bash(git status)"}, Timeout: time.Minute}
	}
	b.start()
	for range 40 {
		b.restartIfDead()
		agent := []string{"coder", "pm"}[rnd.IntN(2)]
		switch rnd.IntN(9) {
		case 0:
			_, _ = b.engine.Agents.Command(t.Context(), human, agent, []string{"continuous", "run_once", "pause"}[rnd.IntN(3)], "")
		case 1, 2, 3:
			if open, err := b.engine.Questions.Questions(t.Context()); err == nil && len(open) > 0 {
				q := open[rnd.IntN(len(open))]
				a := view.QuestionAnswer{Allow: rnd.IntN(2) == 0, Scope: []string{"once", "session", "always"}[rnd.IntN(3)]}
				if q.Kind == string(question.Resume) {
					a = view.QuestionAnswer{Option: []string{view.GoOn, view.Anew}[rnd.IntN(2)]}
				}
				_, _ = b.engine.Questions.AnswerQuestion(t.Context(), human, q.ID, a)
			}
		case 4:
			if standing, err := b.engine.Questions.SavedAnswers(t.Context()); err == nil && len(standing) > 0 {
				_, _ = b.engine.Questions.RevokeSavedAnswer(t.Context(), human, standing[rnd.IntN(len(standing))].ID)
			}
		case 5:
			b.crashPoint.die()
			b.discardEngine()
			b.agent(agent).Model = fmt.Sprint("m", rnd.IntN(2))
		case 6:
			for _, id := range b.host.running() {
				if agentIn(id) == agent {
					b.host.session(id).finish(session.Exit{Lost: true, Why: "its shim was killed"})
				}
			}
		case 7:
			_, _ = b.engine.Questions.LiftLimit(t.Context(), human, agent)
		default:
			b.after(time.Duration(rnd.IntN(90_000)) * time.Millisecond)
		}
		b.settle()
	}
	b.restartIfDead()
	for _, agent := range []string{"coder", "pm"} {
		_, _ = b.engine.Agents.Command(t.Context(), human, agent, "pause", "")
	}
	b.after(70 * time.Minute) // all timeouts have passed
	b.noneOpen()
	b.checkConsistent()
	b.askedOnce()
	for _, q := range b.replayed().Questions.Questions {
		if !q.Over() {
			t.Errorf("%s is %s at the end of the day", q.ID, q.State)
		}
	}
}
