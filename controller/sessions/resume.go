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
	conflictEvery     = 5 * time.Second // how often the process table is searched again; each search reads all of it
	conflictsShownMax = 5
)

// errLeft means that a session is no longer to be started, and that its withdrawal is already
// recorded.
var errLeft = errors.New("the session is no longer to be started")

// conversationToResume returns the id of the earlier conversation that a session resumes; empty if
// it begins a new one. cut means that the conversation was interrupted in the middle of its prompt.
// The error is errLeft if the session is no longer to be started.
func (c *Controller) conversationToResume(ctx context.Context, m *Slot, s team.Session, agent driver.Agent, record *team.LaunchRecord) (id string, cut bool, err error) {
	if m.Run != "" || m.Conf.Resume == config.ResumeNever || !m.Driver.Capabilities(agent, driver.Kind(s.Kind)).Resumes {
		return "", false, nil
	}
	var was team.Conversation
	wanted := false
	if err := c.View(ctx, func(t *team.Team) {
		a := t.Agents[m.Conf.Name]
		if conv := a.Conversations[s.For]; conv != nil && conv.Session != s.ID {
			was = *conv
			wanted, cut, _ = ShouldResume(a, &s, conv, m.Conf.Resume)
		}
	}); err != nil {
		return "", false, err
	}
	if !wanted || was.ID == "" {
		return "", false, nil
	}
	for _, settle := range []func(context.Context, *Slot, team.Session, *team.Conversation, driver.Agent, *team.LaunchRecord) (bool, error){c.confirmChangedLaunch, c.confirmNoConflict} {
		if on, err := settle(ctx, m, s, &was, agent, record); err != nil || !on {
			return "", false, err
		}
	}
	return was.ID, cut, nil
}

// ShouldResume reports whether a session resumes the conversation of an earlier session, and why
// not. Sessions for channels and interrupted sessions do; sessions that ended well only if the
// configuration says so.
func ShouldResume(a *team.Agent, s *team.Session, c *team.Conversation, how config.Resume) (wanted, cut bool, why string) {
	if ResumeFailed(a, c) {
		return false, false, "an attempt to resume " + c.ID + " failed"
	}
	if s.ServesChannels() {
		return true, false, ""
	}
	at := slices.IndexFunc(a.Past, func(p team.Session) bool { return p.ID == c.Session })
	if at < 0 || a.Past[at].Kind != s.Kind { // too long ago, or a cleanup, which is not part of the work
		return false, false, c.ID + " was for something else"
	}
	switch before := &a.Past[at]; {
	case before.Outcome == control.Lost, before.Outcome == control.RateLimited:
		return true, true, ""
	case before.Outcome == control.Cancelled && before.CutOff && (before.Stop == nil || !before.Stop.OK):
		return true, true, "" // Fairlead was stopped, not the work
	case before.Outcome == control.Failed && !c.Resumed && (before.Stop == nil || before.Stop.Reason == driver.ReasonDied):
		return true, true, "" // the program died; resumed only once, since the conversation may be the cause
	case before.Outcome == control.Failed && before.Stop != nil && before.Stop.Reason == driver.ReasonNotSignedIn:
		return true, true, "" // a person may have signed in since; otherwise it fails again
	case before.Outcome == control.OK && s.For == team.ForControl && how == config.ResumeAlways:
		return true, false, ""
	case before.Outcome == control.OK:
		return false, false, c.ID + " ended well"
	default:
		return false, false, c.ID + " was not cut off: its session ended as " + string(before.Outcome)
	}
}

// resumesMax is how many consecutive sessions may fail with one conversation; a single failure may
// be an accident.
const resumesMax = 2

// ResumeFailed reports whether resuming a conversation does not work: the program said so, or the
// sessions fail each time. The session that began the conversation may fail once.
func ResumeFailed(a *team.Agent, c *team.Conversation) bool {
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

// confirmChangedLaunch asks a person before a conversation is resumed with a changed launch.
func (c *Controller) confirmChangedLaunch(ctx context.Context, m *Slot, s team.Session, was *team.Conversation, _ driver.Agent, record *team.LaunchRecord) (bool, error) {
	differs := LaunchDiffers(was, record)
	if len(differs) == 0 {
		return true, nil
	}
	return c.askToResume(ctx, m, s, was, resumeQuestion{
		what: "its conversation would be resumed with other settings: " + strings.Join(differs, "; "), list: differs,
		why: "Fairlead resumes a conversation with the settings that it began with, unless a person agrees to a change",
	})
}

// LaunchDiffers lists how a launch differs from the one that began the conversation.
func LaunchDiffers(was *team.Conversation, record *team.LaunchRecord) []string {
	if was.Launch == nil {
		return []string{"the settings that it was started with are not known"}
	}
	return was.Launch.Differs(record)
}

// confirmNoConflict asks a person while another process has the conversation open, until that
// process has closed it.
func (c *Controller) confirmNoConflict(ctx context.Context, m *Slot, s team.Session, was *team.Conversation, agent driver.Agent, _ *team.LaunchRecord) (bool, error) {
	if c.opts.ProcessConflicts == nil {
		return true, nil
	}
	look := func() []string {
		found, err := c.opts.ProcessConflicts(ctx, was.ID, agent.Command)
		if err != nil && ctx.Err() == nil {
			c.log.Warn("cannot check whether another process has a conversation open; it is resumed", "session", s.ID, "error", err)
		}
		list := make([]string, 0, len(found))
		for _, one := range found[:min(len(found), conflictsShownMax)] {
			list = append(list, one.String())
		}
		return list
	}
	list := look()
	if len(list) == 0 {
		return true, nil
	}
	return c.askToResume(ctx, m, s, was, resumeQuestion{
		what: "another process has its conversation open: " + strings.Join(list, "; "), list: list,
		why:   "two programs in one conversation overwrite each other's memory; the session starts automatically when the other process has closed it",
		moved: func() bool { return len(look()) == 0 }, once: true,
	})
}

// resumeQuestion is what a person is asked about resuming a conversation.
type resumeQuestion struct {
	what  string
	list  []string
	why   string
	moved func() bool // reports that the question is no longer needed; nil: never
	once  bool        // the answer applies only to this session
}

// askToResume asks a person and waits for the answer; true means resume. The answer for an earlier
// session that came to nothing still applies, so that a turn that has passed meanwhile does not
// cause the same question again.
func (c *Controller) askToResume(ctx context.Context, m *Slot, s team.Session, was *team.Conversation, about resumeQuestion) (bool, error) {
	ask := ResumeAskID(was.ID, about.list)
	raised := question.Ask{Question: question.Question{
		Kind: question.Resume, Agent: m.Conf.Name, Session: s.ID, Ask: ask, What: about.what, Why: about.why, Paths: about.list, Default: view.Anew,
		Options: []question.Option{
			{ID: view.GoOn, Label: "resume conversation " + loop.CutText(was.ID, conversationShownMax)},
			{ID: view.Anew, Label: "start a new one"},
		},
	}}
	for asked := false; ; asked = true {
		var q *question.Question
		next := resumeWaits
		look := func(t *team.Team) bool {
			now := m.Open(t)
			startable := now != nil && now.ID == s.ID && now.Ending == ""
			if startable && !s.ServesChannels() {
				startable, _ = m.mayStart(t, s.ID, c.Now())
			}
			q = ResumeAnswer(t, m.Conf.Name, s.ID, ask, about.once)
			if wait := m.Conf.Permissions.Timeout; wait > 0 && q == nil {
				raised.Question.ExpiresAt = c.Now().Add(wait)
			}
			next = resumeNext(q, startable, asked)
			return next != resumeWaits
		}
		if err := c.untilAnswered(ctx, about.moved, look); err != nil {
			return false, err
		}
		switch next {
		case resumeLeaves:
			_, _ = c.mayStart(ctx, m, s) // withdraws the session if it is still open
			return false, errLeft
		case resumeAsks:
			if _, err := c.SubmitOf(ctx, ByEngine, m, raised); err != nil && !loop.IsAnswer(err) {
				return false, err
			}
		case resumeBeginsNew:
			return false, nil
		case resumeTakesAnswer:
			if q.State == question.Answered {
				if _, err := c.SubmitOf(ctx, ByEngine, m, question.Hand{ID: q.ID}); err != nil && !loop.IsAnswer(err) {
					return false, err
				}
			}
			return q.Option == view.GoOn, nil
		case resumeWaits: // the question is no longer needed
			_, err := c.SubmitOf(ctx, ByEngine, m, question.TakeBack{ID: q.ID, Why: "no other process has the conversation open any more"})
			return true, err
		}
	}
}

// untilAnswered waits until look returns true, or until moved, which has no event and is therefore
// asked every conflictEvery, does. moved may be nil.
func (c *Controller) untilAnswered(ctx context.Context, moved func() bool, look func(*team.Team) bool) error {
	for {
		waiting, cancel := ctx, func() {}
		if moved != nil {
			waiting, cancel = context.WithTimeout(ctx, conflictEvery)
		}
		err := c.Until(waiting, look)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return errLeft
		case waiting.Err() == nil: // the loop has stopped
			return err
		case moved():
			return nil
		}
	}
}

// resumeStep is what a session does next about the question whether it resumes a conversation.
type resumeStep int

const (
	resumeWaits       resumeStep = iota // for a person's answer
	resumeLeaves                        // the session is not to be started any more
	resumeAsks                          // it asks a person
	resumeBeginsNew                     // it begins a new conversation, which is always safe
	resumeTakesAnswer                   // it does what the person chose
)

// resumeNext decides the step from the question as the team has it (nil: there is none), from whether
// the session may still be started, and from whether it has asked already.
func resumeNext(q *question.Question, startable, asked bool) resumeStep {
	switch {
	case !startable:
		return resumeLeaves
	case q == nil && !asked:
		return resumeAsks
	case q == nil || q.State == question.Withdrawn:
		return resumeBeginsNew // the question could not be asked, or was taken back
	case q.State == question.Answered || q.State == question.Told:
		return resumeTakesAnswer
	default:
		return resumeWaits
	}
}

// ResumeAskID derives a question's id from its subject, so that the same question is asked once.
func ResumeAskID(conversation string, list []string) string {
	sum := sha256.Sum256([]byte(conversation + "\x00" + strings.Join(list, "\x00")))
	return view.AskAs + hex.EncodeToString(sum[:8])
}

// ResumeAnswer finds the question, or an equal one that was answered for an earlier session.
func ResumeAnswer(t *team.Team, agent, session, ask string, once bool) *question.Question {
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

// NotFound names the conversation that a session should have resumed, if its program did not find
// it.
func NotFound(c *team.Conversation) string {
	if c == nil || c.Launch == nil || c.Launch.Resume == "" || c.Resumed || c.ID == c.Launch.Resume {
		return ""
	}
	return fmt.Sprintf("its program did not find conversation %s, and began %s", c.Launch.Resume, cmp.Or(c.ID, "a new one"))
}

const conversationShownMax = 300 // bytes of a conversation's id in a question
