package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/script"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
	"github.com/fairlead-dev/fairlead/read/view"
)

// On one day in five an agent asks for permission before its calls, sometimes withdraws a question,
// and sometimes meets a rate limit. Rules, people, saved answers and timeouts answer the questions.

// asks reports whether a day has questions.
func asks(seed uint64) bool { return seed%5 == 2 }

// askingAgent is the agent whose sessions ask questions.
const askingAgent = "pm"

// questionTimeout is the time limit of a question. It is a fifth of the time that settleLong takes.
const questionTimeout = 2 * time.Minute

// configureQuestions gives askingAgent its permission rules.
func configureQuestions(conf *config.Config, seed uint64) {
	for i := range conf.Agents {
		if a := &conf.Agents[i]; asks(seed) && a.Name == askingAgent {
			a.Permissions = config.Permissions{
				Allow: []string{"Bash(git status)"}, Deny: []string{"Bash(git push)"},
				Timeout: questionTimeout,
			}
			if seed/5%2 == 0 {
				a.Permissions.Otherwise = config.OtherwiseAllow
			}
		}
	}
}

// questionActKinds lists the acts of people around questions with their weights.
var questionActKinds = []struct {
	do     string
	weight int
}{{"reply", 9}, {"revoke", 2}, {"retry", 1}}

var replyWords = []string{"yes once", "yes once", "no once", "yes session", "no session", "yes always", "no always"}

func (w fileWorld) isDayEnding() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dayEnding
}

// drawReply chooses a question and an answer for an act.
func drawReply(rnd *rand.Rand, a Act) Act {
	if a.Do != "reply" && a.Do != "revoke" {
		return a
	}
	return Act{Do: a.Do, Word: replyWords[rnd.IntN(len(replyWords))], MS: int64(rnd.IntN(7))}
}

// reply answers a question, revokes a saved answer, or lifts a rate limit. MS is the number of the
// question or saved answer.
func (w fileWorld) reply(a Act) {
	w.mu.Lock()
	open, standing := w.truth.Questions.Open(""), w.truth.Questions.List()
	w.mu.Unlock()
	yes, scope, _ := strings.Cut(a.Word, " ")
	switch {
	case a.Do == "retry":
		w.order("retry", "", func(ctx context.Context, l *engineRun) (uint64, error) {
			return l.engine.Questions.LiftLimit(ctx, byPerson, askingAgent)
		})
	case a.Do == "reply" && len(open) > 0:
		id := open[int(a.MS)%len(open)].ID
		w.order("answer to "+id, "", func(ctx context.Context, l *engineRun) (uint64, error) {
			return l.engine.Questions.AnswerQuestion(ctx, byPerson, id, view.QuestionAnswer{Allow: yes == "yes", Scope: scope})
		})
	case a.Do == "revoke" && len(standing) > 0:
		id := standing[int(a.MS)%len(standing)].ID
		w.order("revoke "+id, "", func(ctx context.Context, l *engineRun) (uint64, error) {
			return l.engine.Questions.RevokeSavedAnswer(ctx, byPerson, id)
		})
	}
}

// sessionQuestions records the questions of a session. The world's lock guards it.
type sessionQuestions struct {
	open    map[string]bool   // question → it waits for an answer; false: it was withdrawn
	answers map[string]string // question → the option that the session received
	times   map[string]int    // question → how many times the journal stores it
}

func newSessionQuestions() *sessionQuestions {
	return &sessionQuestions{open: map[string]bool{}, answers: map[string]string{}, times: map[string]int{}}
}

// askingSimAgent plays a session that asks questions.
type askingSimAgent struct {
	*simAgent
	n int
}

func (w fileWorld) playAskingAgent(ctx context.Context, s *hostSession) script.End {
	k := &askingSimAgent{simAgent: &simAgent{w: w.world, s: s, ctx: ctx, rnd: rand.New(rand.NewPCG(w.seed, hash(s.id)))}}
	k.emit(map[string]any{"type": driver.UsageReported, "input_tokens": 5, "output_tokens": 5, "cost_usd": 0.02})
	for range 1 + k.rnd.IntN(3) {
		if why := k.sleep(200, 9000); why == terminated || why == killed {
			return k.end(why)
		}
		if why := k.askPermission(); why != uninterrupted {
			return k.end(why)
		}
	}
	if !w.isDayEnding() && k.rnd.IntN(4) == 0 {
		limit := map[string]any{"type": driver.RateLimited, "text": "no more for now"}
		if wait := k.rnd.IntN(90); wait > 20 {
			limit["until"] = time.Now().UTC().Add(time.Duration(wait) * time.Second)
		}
		k.emit(limit)
		k.emit(map[string]any{"type": driver.Stopped, "ok": false, "reason": "rate_limited"})
		return script.End{Code: 1}
	}
	return k.end(inputEnded)
}

var askedCommands = []string{"git status", "git push", "make", "make", "make clean", "make clean", "rm -rf build"}

// askPermission asks a question and waits for its answer, or withdraws it after a while.
func (k *askingSimAgent) askPermission() interruption {
	k.n++
	id := fmt.Sprintf("ask-%d", k.n)
	k.w.mu.Lock()
	k.s.asks.open[id] = true
	k.w.mu.Unlock()
	k.emit(map[string]any{
		"type": driver.PermissionAsked, "id": id, "tool": "Bash", "text": "may I?",
		"args":    map[string]string{"command": askedCommands[k.rnd.IntN(len(askedCommands))]},
		"options": []driver.Option{{ID: "always", Kind: "allow_always"}, {ID: "yes", Kind: "allow_once"}, {ID: "no", Kind: "reject_once"}},
	})
	var tired <-chan time.Time
	if k.rnd.IntN(4) == 0 && !(fileWorld{k.w}).isDayEnding() {
		tired = wait.After(time.Duration(1+k.rnd.IntN(60_000)) * time.Millisecond)
	}
	for {
		k.w.mu.Lock()
		in := k.s.input
		lines := in.lines
		in.lines = nil
		for i := range lines {
			if o := lines[i].order; o.Type == speech.OrderAnswer && k.s.asks.answers[o.ID] == "" {
				k.s.asks.answers[o.ID] = o.Option
			}
		}
		done := k.s.asks.answers[id] != ""
		more, closed := in.more, in.closed
		k.w.mu.Unlock()
		switch {
		case done:
			return uninterrupted
		case closed:
			return inputEnded
		}
		select {
		case <-more:
		case <-tired:
			k.w.mu.Lock()
			k.s.asks.open[id] = false
			k.w.mu.Unlock()
			k.emit(map[string]any{"type": driver.PermissionWithdrawn, "id": id})
			return uninterrupted
		case <-k.s.sigterm:
			return terminated
		case <-k.ctx.Done():
			return killed
		}
	}
}

// checkAnswer runs before unlabelled input is written. An answer must be the stored one, and its
// question must exist.
func (w fileWorld) checkAnswer(s *hostSession, b []byte) {
	var o speech.Order
	if json.Unmarshal(b, &o) != nil || o.Type != speech.OrderAnswer {
		return
	}
	q := w.truth.Questions.Of(s.id, o.ID)
	checks(w).check(durableFirst, q != nil && q.Option == o.Option && q.State != question.Open,
		"%s receives %q for %s, but the stored question is %+v", s.id, o.Option, o.ID, q)
	_, was := s.asks.open[o.ID]
	checks(w).check(questionAnswered, was, "%s receives %q for %s, which it never asked", s.id, o.Option, o.ID)
}

// checkQuestion checks a change of a question before it is applied.
func (w fileWorld) checkQuestion(ch change.Change) {
	if change.As[question.Body](ch.Body) == nil || change.As[question.Body](ch.Body).Question == nil {
		return
	}
	q := change.As[question.Body](ch.Body).Question
	s := w.sessions[q.Session]
	if s == nil {
		checks(w).broken(questionAnswered, "the question %s belongs to %s, which was never started", q.ID, q.Session)
		return
	}
	_, was := s.asks.open[q.Ask]
	checks(w).check(questionAnswered, was, "%s is stored as a question of %s (%s), which did not ask it", q.ID, s.id, q.Ask)
	if ch.From == string(question.None) {
		s.asks.times[q.Ask]++
		checks(w).check(questionAnswered, s.asks.times[q.Ask] == 1, "%s of %s is stored %d times", q.Ask, s.id, s.asks.times[q.Ask])
	}
	if q.State == question.Delivered {
		typed := slices.ContainsFunc(strings.Split(string(s.input.all), "\n"), func(text string) bool {
			var o speech.Order
			return json.Unmarshal([]byte(text), &o) == nil && o.Type == speech.OrderAnswer && o.ID == q.Ask && o.Option == q.Option
		})
		checks(w).check(questionAnswered, typed, "%s is stored as delivered, but the input of %s has no such answer", q.ID, s.id)
	}
}

// checkEnd checks the end of a session before it is applied: denied calls are counted, and a rate
// limit is not a failure.
func (w fileWorld) checkEnd(ch change.Change) {
	s := change.As[team.Session](ch.Body)
	if s == nil || s.Phase != session.None || agentIn(s.ID) != askingAgent {
		return
	}
	denied := 0
	for _, q := range w.truth.Questions.Questions {
		if q.Session == s.ID && q.By != "" && !q.Allow {
			denied++
		}
	}
	checks(w).check(deniedCounted, s.Denied == denied, "%s was denied %d calls, but its end counts %d", s.ID, denied, s.Denied)
	if denied > 0 && s.Outcome == control.OK {
		checks(w).check(deniedCounted, strings.Contains(s.Why, "denied"), "%s was denied %d calls, but its result is %q", s.ID, denied,
			s.Why)
	}
	if s.Outcome == control.RateLimited && !s.ServesChannels() {
		// the one-shot must run once more after the rate limit
		w.oneShots[fmt.Sprintf("%s desired state %d", askingAgent, w.desiredOf[s.ID])]--
	}
}

// checkQuestions runs when nothing is left to do. Every open question is stored, every answer was
// delivered, and no question belongs to a session that has ended.
func (w fileWorld) checkQuestions() {
	for _, q := range w.truth.Questions.Questions {
		s := w.sessions[q.Session]
		a := w.truth.Agents[q.Agent]
		there := a.Session != nil && a.Session.ID == q.Session
		checks(w).check(questionAnswered, there || q.Over(), "%s is open (%s), but %s has ended", q.ID, q.State, q.Session)
		if !there || s == nil || s.isOver() || a.Session.Ending != "" {
			continue
		}
		checks(w).check(questionAnswered, q.State != question.Answered, "%s was answered, but the answer did not reach %s", q.ID, q.Session)
		checks(w).check(questionAnswered, q.State != question.Open || s.asks.open[q.Ask], "%s is open, but %s withdrew it", q.ID, q.Session)
		checks(w).check(questionAnswered, q.State != question.Open || q.ExpiresAt.IsZero() || w.now().Before(q.ExpiresAt.Add(calmFor)),
			"%s is open, but timed out at %v", q.ID, q.ExpiresAt)
	}
	for id, s := range w.sessions {
		a := w.truth.Agents[agentIn(id)]
		if s.isOver() || a.Session == nil || a.Session.ID != id || a.Session.Ending != "" {
			continue
		}
		for ask, open := range s.asks.open {
			checks(w).check(questionAnswered, !open || s.asks.times[ask] == 1, "%s asked %s, which is not stored", id, ask)
		}
	}
	if a := w.truth.Agents[askingAgent]; a != nil && a.Limited != nil && !w.now().Before(a.Limited.Until.Add(calmFor)) {
		checks(w).check(rateLimitHolds, !a.Waits(), "%s still waits, although its rate limit ended at %v", askingAgent, a.Limited.Until)
	}
}
