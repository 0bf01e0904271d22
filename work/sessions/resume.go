package sessions

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/process/driver"
)

const (
	conflictEvery     = 5 * time.Second // how often the process table is searched again; each search reads all of it
	conflictsShownMax = 5
)

// conversationToResume returns the id of the earlier conversation that a session resumes; empty if
// it begins a new one. cut means that the conversation was interrupted in the middle of its prompt.
// The error is ErrNotAsked if the session is no longer to be started.
func (c *Controller) conversationToResume(ctx context.Context, m *Slot, s team.Session, agent driver.Agent,
	record *team.LaunchRecord,
) (id string, cut bool, err error) {
	if m.Run != "" || m.Conf.Resume == config.ResumeNever || !m.Resumes {
		return "", false, nil
	}
	var was team.Conversation
	wanted := false
	if err := c.loop.View(ctx, func(t *team.Team) {
		a := t.Agents[m.Conf.Name]
		if conv := a.Conversations[s.For]; conv != nil && conv.Session != s.ID {
			was = *conv
			wanted, cut, _ = a.ShouldResume(&s, conv, t.ResumesAlways(&s, m.Conf.Resume == config.ResumeAlways))
		}
	}); err != nil {
		return "", false, err
	}
	if !wanted || was.ID == "" || was.Launch != nil && was.Launch.Host != record.Host { // a program keeps its conversations on its machine
		return "", false, nil
	}
	for _, settle := range []func(context.Context, *Slot, team.Session, *team.Conversation, driver.Agent, *team.LaunchRecord) (bool,
		error){c.confirmChangedLaunch, c.confirmNoConflict} {
		if on, err := settle(ctx, m, s, &was, agent, record); err != nil || !on {
			return "", false, err
		}
	}
	return was.ID, cut, nil
}

// confirmChangedLaunch asks a person before a conversation is resumed with a changed launch.
func (c *Controller) confirmChangedLaunch(ctx context.Context, m *Slot, s team.Session, was *team.Conversation, _ driver.Agent,
	record *team.LaunchRecord,
) (bool, error) {
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
func (c *Controller) confirmNoConflict(ctx context.Context, m *Slot, s team.Session, was *team.Conversation, agent driver.Agent,
	_ *team.LaunchRecord,
) (bool, error) {
	if c.opts.ProcessConflicts == nil || agent.OtherHost != "" {
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
func (c *Controller) askToResume(ctx context.Context, m *Slot, s team.Session, was *team.Conversation, about resumeQuestion) (bool,
	error,
) {
	ask := team.ResumeAskID(was.ID, about.list)
	raised := question.Ask{Question: question.Question{
		Kind: question.Resume, Agent: m.Conf.Name, Session: s.ID, Ask: ask, What: about.what, Why: about.why, Paths: about.list,
		Default: view.Anew,
		Options: []question.Option{
			{ID: view.GoOn, Label: "resume conversation " + clip.Text(was.ID, conversationShownMax)},
			{ID: view.Anew, Label: "start a new one"},
		},
	}}
	for asked := false; ; asked = true {
		var q *question.Question
		next := team.ResumeWaits
		look := func(t *team.Team) bool {
			now := m.Open(t)
			startable := now != nil && now.ID == s.ID && now.Ending == ""
			if startable && !s.ServesChannels() {
				startable, _ = m.MayStart(t, s.ID, c.loop.Now())
			}
			q = t.ResumeAnswer(m.Conf.Name, s.ID, ask, about.once)
			if wait := m.Conf.Permissions.Timeout; wait > 0 && q == nil {
				raised.Question.ExpiresAt = c.loop.Now().Add(wait)
			}
			next = team.NextResumeStep(q, startable, asked)
			return next != team.ResumeWaits
		}
		if err := c.untilAnswered(ctx, about.moved, look); err != nil {
			return false, err
		}
		switch next {
		case team.ResumeLeaves:
			return false, ErrNotAsked
		case team.ResumeAsks:
			if _, err := c.SubmitOf(ctx, ByEngine, m, raised); err != nil && !loop.IsAnswer(err) {
				return false, err
			}
		case team.ResumeBeginsNew:
			return false, nil
		case team.ResumeTakesAnswer:
			if q.State == question.Answered {
				if _, err := c.SubmitOf(ctx, ByEngine, m, question.Hand{ID: q.ID}); err != nil && !loop.IsAnswer(err) {
					return false, err
				}
			}
			return q.Option == view.GoOn, nil
		case team.ResumeWaits: // the question is no longer needed
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
		err := c.loop.Until(waiting, look)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ErrNotAsked
		case waiting.Err() == nil: // the loop has stopped
			return err
		case moved():
			return nil
		}
	}
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
