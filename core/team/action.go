package team

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// ActionKind is a kind of thing to be done in the world.
type ActionKind string

const (
	StartSession ActionKind = "start_session"
	EndSession   ActionKind = "end_session"
	WriteFile    ActionKind = "write_file"

	FindReport        ActionKind = ActionKind(workflow.FindReport)
	EvaluateCondition ActionKind = ActionKind(workflow.EvaluateCondition)
	FindItems         ActionKind = ActionKind(workflow.FindItems)
	AskForAnswer      ActionKind = ActionKind(workflow.AskForAnswer)
)

// Action is an action that the team's state requires. The same state produces the same key, and
// repeating an action has no further effect. The action for a file always has the same key: it
// writes what is true at the time of writing.
type Action struct {
	Key     string
	Do      ActionKind
	Agent   string
	Session Session // for StartSession and EndSession

	Run  string          // for an action of RunActions
	Step workflow.Action // for an action of RunActions: what the step's machine requires, with the lease for the reply

	Folder string             // for an action of DispatchActions
	Work   string             // for an action of DispatchActions: the key of the work
	End    DispatchSessionEnd // for an action of DispatchActions: how the session ended
}

// Actions derives an agent's pending actions from its state. It is called again after every change
// and after a crash, so nothing has to be remembered.
func (t *Team) Actions(a *Agent) iter.Seq[Action] {
	return func(yield func(Action) bool) {
		for _, s := range a.Sessions() {
			switch {
			case s.Phase == session.Open:
				if !yield(Action{Key: "start/" + s.ID, Do: StartSession, Agent: a.Name, Session: *s}) {
					return
				}
			case s.Phase == session.Running && s.Ending != "":
				if !yield(Action{Key: "end/" + s.ID + "/" + strconv.FormatBool(s.Now), Do: EndSession, Agent: a.Name, Session: *s}) {
					return
				}
			}
		}
		if !a.Control.Stamp.IsZero() && a.Control.State != control.Absent {
			yield(Action{Key: "file/" + a.Name, Do: WriteFile, Agent: a.Name})
		}
	}
}

// MayStart is the last check before a process starts. A session that is no longer wanted is
// withdrawn with the returned reason.
func (t *Team) MayStart(agent, id string, at time.Time) (ok bool, why string) {
	a := t.Agents[agent]
	if a == nil || a.Open(id) == nil || a.Open(id).Phase != session.Open {
		return false, "it is not open"
	}
	return t.mayStart(a.at(a.Open(id).Slot), at)
}

// MayStartRun is the same check for the session of a step without an agent.
func (t *Team) MayStartRun(run, id string, at time.Time) (ok bool, why string) {
	for key, s := range t.Pool.Sessions {
		if s.ID == id && s.Phase == session.Open && strings.HasPrefix(key, run+"/") {
			return t.mayStart(t.stepSlot(key), at)
		}
	}
	return false, "it is not open"
}

func (t *Team) mayStart(a *Agent, at time.Time) (ok bool, why string) {
	if ok, why = t.mayRunSession(a, at); !ok {
		return false, why
	}
	switch run, step, isStep := StepOf(a.Session.For); {
	case a.Session.Ending != "":
		return false, a.Session.Ending
	case isStep && t.Runs[run] == nil:
		return false, "the run is over"
	case isStep:
		return t.Runs[run].Wanted(workflow.Lease{Step: workflow.StepID(step), N: a.Session.Lease}, workflow.Now{At: at})
	case a.Session.For == ForControl:
		return t.mayControl(a, at)
	case a.Session.IsLead():
		return t.leadActionWanted(a, a.Session.Delivery.Key)
	case a.Session.ServesChannels():
		return t.deliveryWanted(a, at)
	case a.Session.servesDispatch():
		return t.mayServeDispatch(a, a.Session.For, at)
	default:
		return true, ""
	}
}

// servesRun reports whether a session does a step of a run.
func servesRun(s *Session) bool {
	if s == nil {
		return false
	}
	_, _, is := StepOf(s.For)
	return is
}

// mayRunSession checks what applies to every session (J2).
func (t *Team) mayRunSession(a *Agent, at time.Time) (ok bool, why string) {
	switch {
	case a.Removed:
		return false, a.Name + " is no longer configured"
	case t.Stopping:
		return false, "fairlead stops"
	case t.Hold.On:
		return false, "the team is held"
	case t.RunsOnly && !servesRun(a.Session):
		return false, "this process only does runs; `fairlead up` starts agents"
	}
	if limit := t.OverLimit(a, at); limit != "" {
		return false, limitWords + limit
	}
	return true, ""
}

// mayControl checks what applies only to control: for example, a pause of the agent does not affect
// its channels.
func (t *Team) mayControl(a *Agent, at time.Time) (ok bool, why string) {
	if ok, why = t.mayRunSession(a, at); !ok {
		return false, why
	}
	if a.Control.Policy.Foreign != (a.Control.State == control.Foreign) {
		return false, "its loop is now configured differently"
	}
	if a.Control.State != control.Foreign && !a.Control.StillWanted() {
		return false, fmt.Sprintf("desired_state is %s now", a.Control.File(false).Desired)
	}
	return true, ""
}

// RunActions derives a run's pending actions from its state, except those of Next: the processes of
// its steps in the worker pool, and the information that it needs from outside.
func (t *Team) RunActions(id string, at time.Time) []Action {
	r := t.Runs[id]
	if r == nil {
		return nil
	}
	var actions []Action
	for step := range r.Actions(workflow.Now{At: at, Held: true}) {
		switch step.Do {
		case workflow.RunIt, workflow.EndIt:
			actions = append(actions, t.poolActions(id, step)...)
		case workflow.FindReport, workflow.EvaluateCondition, workflow.FindItems, workflow.AskForAnswer:
			actions = append(actions, Action{Key: step.Key, Do: ActionKind(step.Do), Run: id, Step: step})
		case workflow.SkipIt, workflow.StartIt: // Next
		}
	}
	return actions
}

func (t *Team) poolActions(id string, step workflow.Action) []Action {
	s := t.Pool.Sessions[id+"/"+string(step.Lease.Step)]
	switch {
	case s == nil:
		return nil // its agent's slot has it
	case s.Phase == session.Open:
		return []Action{{Key: "start/" + s.ID, Do: StartSession, Run: id, Session: *s, Step: step}}
	case s.Ending != "":
		return []Action{{Key: "end/" + s.ID + "/" + strconv.FormatBool(s.Now), Do: EndSession, Run: id, Session: *s, Step: step}}
	default:
		return nil
	}
}

// DeadlineRun is the next time at which a run changes without an event; zero: never. TimerFired is
// due then.
func (t *Team) DeadlineRun(id string) time.Time {
	r := t.Runs[id]
	if r == nil {
		return time.Time{}
	}
	_, _, pool := t.poolDeadline(id, r)
	return table.Earliest(r.Deadline().At, pool, t.limitDeadline(id, r))
}

// Deadline is the next time at which an agent's state changes without an event; zero: never.
func (t *Team) Deadline(a *Agent) time.Time {
	_, next := t.sessionDeadline(a)
	for slot := range a.Extra {
		_, at := t.sessionDeadline(a.at(slot))
		next = table.Earliest(next, at)
	}
	next = table.Earliest(next, t.channelIdleDeadline(a), t.dayDeadline(a, next))
	if a.Waits() {
		next = table.Earliest(next, a.Limited.Until)
	}
	retry := a.Control.Retry()
	if retry.IsZero() || t.Hold.On || t.Stopping || a.Removed {
		return next
	}
	if a.Control.State == control.Foreign && t.OverLimit(a, retry) != "" {
		retry = retry.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) // the next day: these are daily limits
	}
	return table.Earliest(next, retry)
}

// sessionDeadline is when the current session reaches its time limit. It does not apply to a foreign
// loop's program, nor to a session that was asked to end, which has its grace period.
func (t *Team) sessionDeadline(a *Agent) (limit time.Duration, at time.Time) {
	limit = t.SessionLimit(a)
	s := a.Session
	if limit == 0 || s == nil || s.Phase != session.Running || s.Ending != "" || s.Kind == control.Program {
		return limit, time.Time{}
	}
	if s.ServesChannels() {
		if !s.AnswerPending() || s.Delivery.Begun.IsZero() {
			return limit, time.Time{}
		}
		return limit, s.Delivery.Begun.Add(limit) // the limit applies to each answer
	}
	return limit, s.StartedAt.Add(limit)
}
