package agents

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// TellRunning gives a text to the agent of a running session. The target is an agent, a session or a run. The text is in
// the journal before it is written to the program. It is due there until the program confirms that it has read it
// (driver.TextRead), so it is not lost: the next session for the same purpose begins with what is due. Fairlead does
// not write it a second time, so a text that was not written because the daemon died waits for that session.
func (c *Controller) TellRunning(ctx context.Context, by change.Actor, target, text string) (view.TellResult, error) {
	if by.Kind == "agent" {
		return view.TellResult{}, refuseTell(target, "only a person can do this; agents talk in channels", "X10")
	}
	var s team.Session
	var name string
	var err error
	if fault := c.loop.View(ctx, func(t *team.Team) {
		if name, s, err = sessionToTell(t, target); err != nil {
			return
		}
		if m := c.sessions.Slots[name]; m != nil && s.For == team.ForControl {
			if can := m.Driver.Capabilities(sessions.Known(*m.Conf), driver.Kind(s.Kind)); !can.Input && !can.Resumes {
				err = refuseTell(target, "its program takes no text; give it a task, or put it into a channel", "S12")
			}
		}
	}); fault != nil || err != nil {
		return view.TellResult{}, cmp.Or(fault, err)
	}
	told := view.TellResult{Agent: name, Session: s.ID, When: view.TellNextSession}
	if _, _, isStep := team.StepOf(s.For); isStep {
		told.When = view.TellAfterAnswer
	}
	var n uint64
	told.Seq, err = c.loop.Do(ctx, loop.Request{
		Event: loop.EventBy(by, name, team.PersonWrote{Session: s.ID, Text: text}),
		Look:  func(t *team.Team) { n = t.Agents[name].LastTell },
	})
	if err != nil {
		return view.TellResult{}, err
	}
	if c.writeTell(ctx, name, s, n, text) {
		told.When = view.TellAtOnce
	}
	return told, nil
}

// writeTell writes a text to a program that reads during its answer, and reports whether it did.
func (c *Controller) writeTell(ctx context.Context, agent string, s team.Session, n uint64, text string) bool {
	m, proc := c.sessions.Slots[agent], c.sessions.Proc(s.ID)
	typist, ok := proc.(sessionhost.InputWriter)
	if m == nil || !ok || !m.Driver.Capabilities(sessions.Known(*m.Conf), driver.Kind(s.Kind)).Steers {
		return false
	}
	id := strconv.FormatUint(n, 10)
	wire := sessions.LabeledWire{Process: proc, Typist: typist, Label: "tell/" + id}
	err := m.Driver.Converse(sessions.Known(*m.Conf), sessions.SessionFor(m, s), wire).Steer(ctx, id, text)
	if err != nil {
		c.log.Info("a text was not written to a program; its next session begins with it", "session", s.ID, "error", err)
	}
	return err == nil
}

func refuseTell(target, why, row string) error {
	return &table.Refusal{Subject: target, Event: string(session.PersonWrote), State: "asked", Row: row, Reason: why}
}

// notTold says why nothing can be told to a target that is known, and what to do instead.
func notTold(t *team.Team, target string) string {
	r := t.Runs[target]
	switch {
	case t.Agents[target] != nil:
		return fmt.Sprintf("no session of it runs; use `fairlead start %s`, or give a task", target)
	case r == nil:
		return "the session does not run"
	case r.Status() == workflow.IsCompleted, r.Status() == workflow.IsCancelled:
		return "it is over, so no agent works on it; give a new task"
	case r.Status() == workflow.IsFailed:
		return fmt.Sprintf("it has failed, so no agent works on it; continue it with `fairlead run resume %s`, and tell it then", target)
	case r.Status() == workflow.IsWaiting:
		return fmt.Sprintf("it waits for you, so no agent works on it; a task goes back with `fairlead request %s TEXT`, and `fairlead inbox` lists what waits", target)
	default:
		return "no agent works on it at the moment; `fairlead tasks` shows what it does"
	}
}

// sessionToTell finds the running session that a person means: of an agent, of a run, or by its id.
func sessionToTell(t *team.Team, target string) (agent string, s team.Session, err error) {
	found := t.RunningNamed(target)
	switch {
	case len(found) == 1:
		return found[0].Agent, *found[0].Session, nil
	case len(found) > 1:
		return "", s, refuseTell(target, "it has several sessions; name one of them: "+team.SessionNames(found), "S12")
	case t.Agents[target] == nil && t.Runs[target] == nil && !strings.Contains(target, "-"):
		return "", s, &team.Unknown{What: "agent", Name: target, Known: slices.Concat(t.Names(), t.RunIDs())}
	default:
		return "", s, refuseTell(target, notTold(t, target), "S12")
	}
}
