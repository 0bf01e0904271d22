package sessions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/question"
	"github.com/fairlead-dev/fairlead/team"
)

const (
	takeUpEvery    = 200 * time.Millisecond // how often a session that waits for a person's word looks whether it has come
	elsewhereEvery = 5 * time.Second        // how often it is looked whether the other has gone: the process table is read whole
	occupantsShown = 5
)

// errLeft says that a session which was to be started is not to be any more, and that whoever had to
// know knows.
var errLeft = errors.New("it is not to be started any more")

// takenUp says with which earlier conversation a session goes on; empty: it begins a new one. cut: it
// was interrupted in the middle of what it was asked. The error is errLeft where it is not to begin.
func (e *Controller) takenUp(ctx context.Context, m *Slot, s team.Session, agent driver.Agent, record *team.LaunchRecord) (id string, cut bool, err error) {
	resumer, can := m.Driver.(driver.Resumer)
	if !can || m.Run != "" || m.Conf.Resume == config.ResumeNever || !resumer.Resumes(agent) {
		return "", false, nil
	}
	var was team.Conversation
	wanted := false
	if err := e.View(ctx, func(t *team.Team) {
		a := t.Agents[m.Conf.Name]
		if c := a.Conversations[s.For]; c != nil && c.Session != s.ID {
			was = *c
			wanted, cut, _ = TakesUp(a, &s, c, m.Conf.Resume)
		}
	}); err != nil {
		return "", false, err
	}
	if !wanted || was.ID == "" {
		return "", false, nil
	}
	for _, settle := range []func(context.Context, *Slot, team.Session, *team.Conversation, driver.Agent, *team.LaunchRecord) (bool, error){e.asItWas, e.nobodyElse} {
		if on, err := settle(ctx, m, s, &was, agent, record); err != nil || !on {
			return "", false, err
		}
	}
	return was.ID, cut, nil
}

// takesUp says whether a session is to go on with the conversation of one before it, or why not. A talk
// always does; what was cut off does; what has ended well, where the configuration says so.
func TakesUp(a *team.Agent, s *team.Session, c *team.Conversation, how config.Resume) (wanted, cut bool, why string) {
	if GivenUp(a, c) {
		return false, false, "to go on with " + c.ID + " was tried, and does not go"
	}
	if s.ServesChannels() {
		return true, false, ""
	}
	at := slices.IndexFunc(a.Past, func(p team.Session) bool { return p.ID == c.Session })
	if at < 0 || a.Past[at].Kind != s.Kind { // long ago, or a cleanup, which is no part of the work
		return false, false, c.ID + " was for something else"
	}
	switch before := &a.Past[at]; {
	case before.Outcome == control.Lost, before.Outcome == control.RateLimited:
		return true, true, ""
	case before.Outcome == control.Cancelled && before.CutOff && (before.Stop == nil || !before.Stop.OK):
		return true, true, "" // somebody stopped Fairlead, and not the work
	case before.Outcome == control.Failed && !c.Resumed && (before.Stop == nil || before.Stop.Reason == driver.ReasonDied):
		return true, true, "" // the program died; once, since a conversation may be what kills it
	case before.Outcome == control.Failed && before.Stop != nil && before.Stop.Reason == driver.ReasonNotSignedIn:
		return true, true, "" // somebody has signed in since, or it fails once more
	case before.Outcome == control.OK && s.For == team.ForControl && how == config.ResumeAlways:
		return true, false, ""
	case before.Outcome == control.OK:
		return false, false, c.ID + " ended well"
	default:
		return false, false, c.ID + " was not cut off: its session ended as " + string(before.Outcome)
	}
}

// resumesMax is how many sessions in a row may fail with one conversation: one may be an accident.
const resumesMax = 2

// givenUp says whether going on with a conversation was tried and does not go: its program said so, or
// it fails each time. What began it may have failed once.
func GivenUp(a *team.Agent, c *team.Conversation) bool {
	failed, inARow, first, before := 0, true, true, false
	for _, p := range slices.Backward(a.Past) {
		if p.For != c.For {
			continue
		}
		own := p.ID == c.Session
		if first && own && !c.Resumed {
			return p.Stop != nil && p.Stop.Reason == driver.ReasonContextExhausted
		}
		first = false
		if !before && p.Stop != nil && !p.Stop.OK && slices.Contains([]string{driver.ReasonNotResumed, driver.ReasonHeldElsewhere, driver.ReasonContextExhausted}, p.Stop.Reason) {
			return true
		}
		if inARow = inARow && p.Outcome == control.Failed; inARow {
			failed++
		}
		if before = before || own; before && !inARow {
			break
		}
	}
	return failed >= resumesMax
}

// asItWas asks a person where a conversation would go on under other conditions.
func (e *Controller) asItWas(ctx context.Context, m *Slot, s team.Session, was *team.Conversation, _ driver.Agent, record *team.LaunchRecord) (bool, error) {
	differs := Otherwise(was, record)
	if len(differs) == 0 {
		return true, nil
	}
	return e.takeUpAsked(ctx, m, s, was, takeUpQuestion{
		what: "its conversation would go on otherwise than it began: " + strings.Join(differs, "; "), list: differs,
		why: "a conversation goes on as it was, or by a person's word",
	})
}

// otherwise says in what a conversation would go on otherwise than it began.
func Otherwise(was *team.Conversation, record *team.LaunchRecord) []string {
	if was.Launch == nil {
		return []string{"how it was started is not known"}
	}
	return was.Launch.Differs(record)
}

// nobodyElse asks a person where somebody else has the conversation open, until he has left it.
func (e *Controller) nobodyElse(ctx context.Context, m *Slot, s team.Session, was *team.Conversation, agent driver.Agent, _ *team.LaunchRecord) (bool, error) {
	if e.opts.Elsewhere == nil {
		return true, nil
	}
	look := func() []string {
		found, err := e.opts.Elsewhere(ctx, was.ID, agent.Command)
		if err != nil && ctx.Err() == nil {
			e.log.Warn("whether somebody else has a conversation open cannot be seen; it is resumed", "session", s.ID, "error", err)
		}
		list := make([]string, 0, len(found))
		for _, one := range found[:min(len(found), occupantsShown)] {
			list = append(list, one.String())
		}
		return list
	}
	list := look()
	if len(list) == 0 {
		return true, nil
	}
	return e.takeUpAsked(ctx, m, s, was, takeUpQuestion{
		what: "its conversation is open elsewhere: " + strings.Join(list, "; "), list: list,
		why:   "two programs in one conversation overwrite each other's memory; it goes on by itself when the other has left",
		moved: func() bool { return len(look()) == 0 }, once: true,
	})
}

// takeUpQuestion is what a person is asked about a conversation.
type takeUpQuestion struct {
	what  string
	list  []string
	why   string
	moved func() bool // there is nothing to ask any more; nil: that cannot be
	once  bool        // the answer is about this session alone
}

// takeUpAsked asks, and waits for the answer: true is to go on with it. What was answered for an
// earlier session that came to nothing still stands: a turn that passed meanwhile is no reason to ask
// again.
func (e *Controller) takeUpAsked(ctx context.Context, m *Slot, s team.Session, was *team.Conversation, about takeUpQuestion) (bool, error) {
	ask := TakeUpAsk(was.ID, about.list)
	raised := question.Ask{Question: question.Question{
		Kind: question.Resume, Agent: m.Conf.Name, Session: s.ID, Ask: ask, What: about.what, Why: about.why, Paths: about.list, Default: view.Anew,
		Options: []question.Option{
			{ID: view.GoOn, Label: "go on with conversation " + loop.CutText(was.ID, conversationShownMax)},
			{ID: view.Anew, Label: "begin a new one"},
		},
	}}
	looked := time.Now()
	for first := true; ; first = false {
		var q *question.Question
		open := false
		if err := e.View(ctx, func(t *team.Team) {
			now := m.Sitting(t)
			open = now != nil && now.ID == s.ID && now.Ending == ""
			q = TakeUpAnswer(t, m.Conf.Name, s.ID, ask, about.once)
			if wait := m.Conf.Permissions.Timeout; wait > 0 && q == nil {
				raised.Question.ExpiresAt = e.Now().Add(wait)
			}
		}); err != nil {
			return false, err
		}
		switch {
		case !open || !s.ServesChannels() && !e.stillWanted(ctx, m, s):
			_, _ = e.mayStart(ctx, m, s) // withdraws it, where nobody has yet
			return false, errLeft
		case q == nil && first:
			if _, err := e.SubmitOf(ctx, ByEngine, m, raised); err != nil && !loop.IsAnswer(err) {
				return false, err
			}
			continue
		case q == nil || q.State == question.Withdrawn:
			return false, nil // it could not be asked: a new conversation harms nobody
		case q.State == question.Answered || q.State == question.Told:
			if q.State == question.Answered {
				if _, err := e.SubmitOf(ctx, ByEngine, m, question.Hand{ID: q.ID}); err != nil && !loop.IsAnswer(err) {
					return false, err
				}
			}
			return q.Option == view.GoOn, nil
		}
		if about.moved != nil && time.Since(looked) >= elsewhereEvery {
			if looked = time.Now(); about.moved() {
				_, err := e.SubmitOf(ctx, ByEngine, m, question.TakeBack{ID: q.ID, Why: "nobody else has the conversation open any more"})
				return true, err
			}
		}
		if !loop.Rest(ctx, takeUpEvery) {
			return false, errLeft
		}
	}
}

// takeUpAsk names a question, by what it is about: so the same one is asked once.
func TakeUpAsk(conversation string, list []string) string {
	sum := sha256.Sum256([]byte(conversation + "\x00" + strings.Join(list, "\x00")))
	return view.AskAs + hex.EncodeToString(sum[:8])
}

// takeUpAnswer finds the question, or one like it that was answered for a session before.
func TakeUpAnswer(t *team.Team, agent, session, ask string, once bool) *question.Question {
	if q := t.Questions.Of(session, ask); q != nil || once {
		return copyOf(q)
	}
	var found *question.Question
	for _, q := range t.Questions.Questions {
		if q.Agent == agent && q.Ask == ask && q.State == question.Told && (found == nil || q.N > found.N) {
			found = q
		}
	}
	return copyOf(found)
}

func copyOf(q *question.Question) *question.Question {
	if q == nil {
		return nil
	}
	is := *q
	return &is
}

// stillWanted is mayStart, and withdraws nothing.
func (e *Controller) stillWanted(ctx context.Context, m *Slot, s team.Session) (wanted bool) {
	_ = e.View(ctx, func(t *team.Team) { wanted, _ = m.mayStart(t, s.ID, e.Now()) }) // false: we stop
	return wanted
}

// notFound says which conversation a session was to go on with, where its program did not know it.
func NotFound(c *team.Conversation) string {
	if c == nil || c.Launch == nil || c.Launch.Resume == "" || c.Resumed || c.ID == c.Launch.Resume {
		return ""
	}
	return fmt.Sprintf("its program did not find conversation %s again, and began %s", c.Launch.Resume, cmp.Or(c.ID, "a new one"))
}

const conversationShownMax = 300 // bytes of a conversation's id in a question
