package team

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// resumeAskPrefix marks the questions about resuming a conversation.
const resumeAskPrefix = "resume/"

// ResumesAlways reports whether a session resumes a conversation that ended well: for the agent's own work if
// its configuration says so, and for a step that continues its conversation.
func (t *Team) ResumesAlways(s *Session, configured bool) bool {
	run, step, ok := StepOf(s.For)
	if !ok {
		return s.For == ForControl && configured
	}
	if r := t.Runs[run]; r != nil {
		if plan, _, known := r.Find(workflow.StepID(step)); known {
			return plan.ContinueConversation
		}
	}
	return false
}

// ShouldResume reports whether a session resumes the conversation of an earlier session, and why
// not. Sessions for channels and interrupted sessions do; sessions that ended well only if
// always is set (ResumesAlways).
func (a *Agent) ShouldResume(s *Session, c *Conversation, always bool) (wanted, cut bool, why string) {
	if a.resumeFailed(c) {
		return false, false, "an attempt to resume " + c.ID + " failed"
	}
	if s.ServesChannels() {
		return true, false, ""
	}
	at := slices.IndexFunc(a.Past, func(p Session) bool { return p.ID == c.Session })
	if at < 0 || a.Past[at].Kind != s.Kind { // too long ago, or a cleanup, which is not part of the work
		return false, false, c.ID + " was for something else"
	}
	switch before := &a.Past[at]; {
	case before.Outcome == control.Lost, before.Outcome == control.RateLimited:
		return true, true, ""
	case before.Outcome == control.Cancelled && before.CutOff && (before.Stop == nil || !before.Stop.OK):
		return true, true, "" // Fairlead was stopped, not the work
	case before.Outcome == control.Failed && !c.Resumed && (before.Stop == nil || before.Stop.Reason == session.ReasonDied):
		return true, true, "" // the program died; resumed only once, since the conversation may be the cause
	case before.Outcome == control.Failed && before.Stop != nil && before.Stop.Reason == session.ReasonNotSignedIn:
		return true, true, "" // a person may have signed in since; otherwise it fails again
	case before.Outcome == control.OK && always && fills(before, s):
		return false, false,
			fmt.Sprintf("%s fills %d %% of its model's context; a new one gets a hand-over", c.ID, before.Stop.ContextPercent)
	case before.Outcome == control.OK && always:
		return true, false, ""
	case before.Outcome == control.OK:
		return false, false, c.ID + " ended well"
	default:
		return false, false, c.ID + " was not cut off: its session ended as " + string(before.Outcome)
	}
}

// fullPercent is how full the context of a conversation may be for a step to continue it. A round needs room for
// what was wrong with the last one and for the work; a program whose context is full fails, or forgets its first prompt.
const fullPercent = 80

// fills reports whether the conversation of an earlier session is too full for another round of a step.
func fills(before, s *Session) bool {
	_, _, isStep := StepOf(s.For)
	return isStep && before.Stop != nil && before.Stop.ContextPercent >= fullPercent
}

// resumesMax is how many consecutive sessions may fail with one conversation; a single failure may
// be an accident.
const resumesMax = 2

// resumeFailed reports whether resuming a conversation does not work: the program said so, or the
// sessions fail each time. The session that began the conversation may fail once.
func (a *Agent) resumeFailed(c *Conversation) bool {
	failed, inARow, first, before := 0, true, true, false
	for _, p := range slices.Backward(a.Past) {
		if p.For != c.For {
			continue
		}
		own := p.ID == c.Session
		if first && own && !c.Resumed {
			return p.Stop != nil && p.Stop.Reason == session.ReasonContextExhausted
		}
		first = false
		if !before && p.Stop != nil && !p.Stop.OK &&
			slices.Contains([]string{session.ReasonNotResumed, session.ReasonProcessConflict, session.ReasonContextExhausted},
				p.Stop.Reason) {
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

// ResumeStep is what a session does next about the question whether it resumes a conversation.
type ResumeStep int

const (
	ResumeWaits       ResumeStep = iota // for a person's answer
	ResumeLeaves                        // the session is not to be started any more
	ResumeAsks                          // it asks a person
	ResumeBeginsNew                     // it begins a new conversation, which is always safe
	ResumeTakesAnswer                   // it does what the person chose
)

// NextResumeStep decides the step from the question as the team has it (nil: there is none), from whether
// the session may still be started, and from whether it has asked already.
func NextResumeStep(q *question.Question, startable, asked bool) ResumeStep {
	switch {
	case !startable:
		return ResumeLeaves
	case q == nil && !asked:
		return ResumeAsks
	case q == nil || q.State == question.Withdrawn:
		return ResumeBeginsNew // the question could not be asked, or was taken back
	case q.State == question.Answered || q.State == question.Delivered:
		return ResumeTakesAnswer
	default:
		return ResumeWaits
	}
}

// ResumeAskID derives a question's id from its subject, so that the same question is asked once.
func ResumeAskID(conversation string, list []string) string {
	sum := sha256.Sum256([]byte(conversation + "\x00" + strings.Join(list, "\x00")))
	return resumeAskPrefix + hex.EncodeToString(sum[:8])
}

// ResumeAnswer finds the question, or an equal one that was answered for an earlier session.
func (t *Team) ResumeAnswer(agent, session, ask string, once bool) *question.Question {
	if q := t.Questions.Of(session, ask); q != nil || once {
		return copyOfQuestion(q)
	}
	var found *question.Question
	for _, q := range t.Questions.Questions {
		if q.Agent == agent && q.Ask == ask && q.State == question.Delivered && (found == nil || q.N > found.N) {
			found = q
		}
	}
	return copyOfQuestion(found)
}

func copyOfQuestion(q *question.Question) *question.Question {
	if q == nil {
		return nil
	}
	is := *q
	return &is
}
