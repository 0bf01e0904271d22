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
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/script"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/question"
	"github.com/fairlead-dev/fairlead/machine/session"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

// On one day in five an agent asks before it does anything, sometimes withdraws its question, and is
// rate limited at times. Rules, people, saved answers and timeouts answer it. All other days are
// unchanged.

// asks says whether a day knows questions.
func asks(seed uint64) bool { return seed%5 == 2 }

// whoAsks is whose sessions do.
const whoAsks = "pm"

// askPatience is how long a person is waited for: a fifth of what an evening takes.
const askPatience = 2 * time.Minute

// withQuestions gives who asks its rules.
func withQuestions(conf *config.Config, seed uint64) {
	for i := range conf.Agents {
		if a := &conf.Agents[i]; asks(seed) && a.Name == whoAsks {
			a.Permissions = config.Permissions{Allow: []string{"Bash(git status)"}, Deny: []string{"Bash(git push)"}, Timeout: askPatience}
			if seed/5%2 == 0 {
				a.Permissions.Otherwise = config.OtherwiseAllow
			}
		}
	}
}

// askDeeds are what people do about questions, with how often.
var askDeeds = []struct {
	do     string
	weight int
}{{"reply", 9}, {"revoke", 2}, {"retry", 1}}

var replyWords = []string{"yes once", "yes once", "no once", "yes session", "no session", "yes always", "no always"}

func (w *world) isDusk() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dusk
}

// drawReply says of a deed which question it is about, and what is said.
func drawReply(rnd *rand.Rand, a Act) Act {
	if a.Do != "reply" && a.Do != "revoke" {
		return a
	}
	return Act{Do: a.Do, Word: replyWords[rnd.IntN(len(replyWords))], MS: int64(rnd.IntN(7))}
}

// reply is a person who answers, or revokes a saved answer. MS is the how-many-eth it is about.
func (w *world) reply(a Act) {
	w.mu.Lock()
	open, standing := w.truth.Questions.Open(""), w.truth.Questions.List()
	w.mu.Unlock()
	yes, scope, _ := strings.Cut(a.Word, " ")
	switch {
	case a.Do == "retry":
		w.give("retry", "", func(ctx context.Context, l *life) (uint64, error) { return l.engine.LiftLimit(ctx, byPerson, whoAsks) })
	case a.Do == "reply" && len(open) > 0:
		id := open[int(a.MS)%len(open)].ID
		w.give("answer to "+id, "", func(ctx context.Context, l *life) (uint64, error) {
			return l.engine.AnswerQuestion(ctx, byPerson, id, view.QuestionAnswer{Allow: yes == "yes", Scope: scope})
		})
	case a.Do == "revoke" && len(standing) > 0:
		id := standing[int(a.MS)%len(standing)].ID
		w.give("revoke "+id, "", func(ctx context.Context, l *life) (uint64, error) { return l.engine.RevokeStanding(ctx, byPerson, id) })
	}
}

// asking is what a session has asked for. The world's lock guards it.
type asking struct {
	open  map[string]bool   // it wants to know; false: it has taken that back
	told  map[string]string // which option it was told, by question
	times map[string]int    // so often it is in the journal
}

func newAsking() *asking {
	return &asking{open: map[string]bool{}, told: map[string]string{}, times: map[string]int{}}
}

// asker plays such a session.
type asker struct {
	*talker
	n int
}

func (w *world) askAround(ctx context.Context, s *hostSession) script.End {
	k := &asker{talker: &talker{w: w, s: s, ctx: ctx, rnd: rand.New(rand.NewPCG(w.seed, hash(s.id)))}}
	k.tell(map[string]any{"type": driver.UsageReported, "input_tokens": 5, "output_tokens": 5, "cost_usd": 0.02})
	for range 1 + k.rnd.IntN(3) {
		if why := k.rest(200, 9000); why == asked || why == killed {
			return k.end(why)
		}
		if why := k.wants(); why != none {
			return k.end(why)
		}
	}
	if !w.isDusk() && k.rnd.IntN(4) == 0 {
		limit := map[string]any{"type": driver.RateLimited, "text": "no more for now"}
		if wait := k.rnd.IntN(90); wait > 20 {
			limit["until"] = time.Now().UTC().Add(time.Duration(wait) * time.Second)
		}
		k.tell(limit)
		k.tell(map[string]any{"type": driver.Stopped, "ok": false, "reason": "rate_limited"})
		return script.End{Code: 1}
	}
	return k.end(nothing)
}

var askCommands = []string{"git status", "git push", "make", "make", "make clean", "make clean", "rm -rf build"}

// wants asks for something, and waits for the answer; or, now and then, for something else.
func (k *asker) wants() cut {
	k.n++
	id := fmt.Sprintf("ask-%d", k.n)
	k.w.mu.Lock()
	k.s.asks.open[id] = true
	k.w.mu.Unlock()
	k.tell(map[string]any{
		"type": driver.PermissionAsked, "id": id, "tool": "Bash", "text": "may I?", "args": map[string]string{"command": askCommands[k.rnd.IntN(len(askCommands))]},
		"options": []driver.Option{{ID: "always", Kind: "allow_always"}, {ID: "yes", Kind: "allow_once"}, {ID: "no", Kind: "reject_once"}},
	})
	var tired <-chan time.Time
	if k.rnd.IntN(4) == 0 && !k.w.isDusk() {
		tired = wait.After(time.Duration(1+k.rnd.IntN(60_000)) * time.Millisecond)
	}
	for {
		k.w.mu.Lock()
		in := k.s.input
		lines := in.lines
		in.lines = nil
		for i := range lines {
			if o := lines[i].order; o.Type == script.OrderAnswer && k.s.asks.told[o.ID] == "" {
				k.s.asks.told[o.ID] = o.Option
			}
		}
		done := k.s.asks.told[id] != ""
		more, closed := in.more, in.closed
		k.w.mu.Unlock()
		switch {
		case done:
			return none
		case closed:
			return nothing
		}
		select {
		case <-more:
		case <-tired:
			k.w.mu.Lock()
			k.s.asks.open[id] = false
			k.w.mu.Unlock()
			k.tell(map[string]any{"type": driver.PermissionWithdrawn, "id": id})
			return none
		case <-k.s.asked:
			return asked
		case <-k.ctx.Done():
			return killed
		}
	}
}

// checkAnswer is asked when something is to be typed that has no name: an answer to a question is what
// is stored, and to a question that was asked.
func (w *world) checkAnswer(s *hostSession, b []byte) {
	var o script.Order
	if json.Unmarshal(b, &o) != nil || o.Type != script.OrderAnswer {
		return
	}
	q := w.truth.Questions.Of(s.id, o.ID)
	w.check(durableFirst, q != nil && q.Option == o.Option && q.State != question.Open, "%s is told %q to %s, and what is stored is %+v", s.id, o.Option, o.ID, q)
	_, was := s.asks.open[o.ID]
	w.check(askedIsTold, was, "%s is told %q to %s, which it never asked", s.id, o.Option, o.ID)
}

// checkQuestion looks at a change of a question on its way into our team.
func (w *world) checkQuestion(ch team.Change) {
	if ch.Body.Question == nil || ch.Body.Question.Question == nil {
		return
	}
	q := ch.Body.Question.Question
	s := w.sessions[q.Session]
	if s == nil {
		w.broken(askedIsTold, "%s is a question of %s, which was never started", q.ID, q.Session)
		return
	}
	_, was := s.asks.open[q.Ask]
	w.check(askedIsTold, was, "%s is stored as asked by %s (%s), which has not", q.ID, s.id, q.Ask)
	if ch.From == string(question.None) {
		s.asks.times[q.Ask]++
		w.check(askedIsTold, s.asks.times[q.Ask] == 1, "%s of %s is stored %d times", q.Ask, s.id, s.asks.times[q.Ask])
	}
	if q.State == question.Told {
		typed := slices.ContainsFunc(strings.Split(string(s.input.all), "\n"), func(text string) bool {
			var o script.Order
			return json.Unmarshal([]byte(text), &o) == nil && o.Type == script.OrderAnswer && o.ID == q.Ask && o.Option == q.Option
		})
		w.check(askedIsTold, typed, "%s is stored as told, and %s has no such answer in its input", q.ID, s.id)
	}
}

// checkEnd checks the end of a session before the team records it: denied calls are counted, and a
// rate limit is not a failure.
func (w *world) checkEnd(ch team.Change) {
	s := ch.Body.Session
	if s == nil || s.Phase != session.None || agentIn(s.ID) != whoAsks {
		return
	}
	denied := 0
	for _, q := range w.truth.Questions.Questions {
		if q.Session == s.ID && q.By != "" && !q.Allow {
			denied++
		}
	}
	w.check(deniedCounted, s.Denied == denied, "%s was denied %d calls, and its end says %d", s.ID, denied, s.Denied)
	if denied > 0 && s.Outcome == control.OK {
		w.check(deniedCounted, strings.Contains(s.Why, "denied"), "%s was denied %d calls, and its result says %q", s.ID, denied, s.Why)
	}
	if s.Outcome == control.RateLimited && !s.ServesChannels() {
		w.oneShots[fmt.Sprintf("%s desired state %d", whoAsks, w.wishOf[s.ID])]-- // the desired state must be carried out once more
	}
}

// checkQuestions runs when everything is done: every open question is known, every answer was
// delivered, and no question waits for an agent that has ended.
func (w *world) checkQuestions() {
	for _, q := range w.truth.Questions.Questions {
		s := w.sessions[q.Session]
		a := w.truth.Agents[q.Agent]
		there := a.Session != nil && a.Session.ID == q.Session
		w.check(askedIsTold, there || q.Over(), "%s waits (%s), and %s is over", q.ID, q.State, q.Session)
		if !there || s == nil || s.isOver() || a.Session.Ending != "" {
			continue
		}
		w.check(askedIsTold, q.State != question.Answered, "%s was answered, all was done, and %s was not told", q.ID, q.Session)
		w.check(askedIsTold, q.State != question.Open || s.asks.open[q.Ask], "%s waits, and %s has taken it back", q.ID, q.Session)
		w.check(askedIsTold, q.State != question.Open || q.ExpiresAt.IsZero() || w.now().Before(q.ExpiresAt.Add(calmFor)), "%s waits, and its time was up at %v", q.ID, q.ExpiresAt)
	}
	for id, s := range w.sessions {
		a := w.truth.Agents[agentIn(id)]
		if s.isOver() || a.Session == nil || a.Session.ID != id || a.Session.Ending != "" {
			continue
		}
		for ask, open := range s.asks.open {
			w.check(askedIsTold, !open || s.asks.times[ask] == 1, "%s asks %s, all was done, and it is not stored", id, ask)
		}
	}
	if a := w.truth.Agents[whoAsks]; a != nil && a.Limited != nil && !w.now().Before(a.Limited.Until.Add(calmFor)) {
		w.check(providerWaits, !a.Waits(), "%s waits for its provider, which takes more since %v", whoAsks, a.Limited.Until)
	}
}
