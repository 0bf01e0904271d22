package team

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/workflow"
)

// Errand is a kind of thing to be done in the world.
type Errand string

const (
	StartSession Errand = "start_session"
	EndSession   Errand = "end_session"
	WriteFile    Errand = "write_file"

	LookForIt Errand = Errand(workflow.LookForIt)
	WeighIt   Errand = Errand(workflow.WeighIt)
	FindItems Errand = Errand(workflow.FindItems)
	AskThem   Errand = Errand(workflow.AskThem)
)

// Todo is an errand that the team's state asks for. The same state gives the same key;
// doing it twice does nothing more. That of a file is the same for ever: it is to say what
// is true when it is written.
type Todo struct {
	Key     string
	Do      Errand
	Agent   string
	Session Session // for StartSession and EndSession

	Run  string        // of an errand that TodoRun gave
	Step workflow.Todo // the same: what the step's machine asks for, with the lease to answer under

	Folder string  // of an errand that TodoFolder gave
	Work   string  // the same: which work of it
	End    WorkEnd // the same: how it ended
}

// Todo reads an agent's errands off its state. It is asked again after every change, and
// after a crash: nothing has to be remembered.
func (t *Team) Todo(a *Agent) iter.Seq[Todo] {
	return func(yield func(Todo) bool) {
		switch s := a.Session; {
		case s == nil:
		case s.Phase == Opened:
			if !yield(Todo{Key: "start/" + s.ID, Do: StartSession, Agent: a.Name, Session: *s}) {
				return
			}
		case s.Phase == Running && s.Ending != "":
			if !yield(Todo{Key: "end/" + s.ID + "/" + strconv.FormatBool(s.Now), Do: EndSession, Agent: a.Name, Session: *s}) {
				return
			}
		}
		if !a.Control.Stamp.IsZero() && a.Control.State != control.Absent {
			yield(Todo{Key: "file/" + a.Name, Do: WriteFile, Agent: a.Name})
		}
	}
}

// MayStart is asked last, when everything is ready and the next thing is the process
// itself. A session that nobody wants any more is withdrawn, with this reason.
func (t *Team) MayStart(agent, session string, at time.Time) (ok bool, why string) {
	a := t.Agents[agent]
	if a == nil || a.Session == nil || a.Session.ID != session || a.Session.Phase != Opened {
		return false, "it is not open"
	}
	return t.mayStart(a, at)
}

// MayStartRun is the same for the session of a step that has no agent of ours.
func (t *Team) MayStartRun(run, session string, at time.Time) (ok bool, why string) {
	for key, s := range t.Bench.Sessions {
		if s.ID == session && s.Phase == Opened && strings.HasPrefix(key, run+"/") {
			return t.mayStart(t.own(key), at)
		}
	}
	return false, "it is not open"
}

func (t *Team) mayStart(a *Agent, at time.Time) (ok bool, why string) {
	if ok, why = t.mayWork(a, at); !ok {
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
	case a.Session.Leads():
		return t.stillToLead(a, a.Session.Talk.Key)
	case a.Session.Talks():
		return t.stillToTell(a, at)
	case a.Session.works():
		return t.mayTakeWork(a, a.Session.For, at)
	default:
		return true, ""
	}
}

// mayWork asks what holds for everybody (J2).
func (t *Team) mayWork(a *Agent, at time.Time) (ok bool, why string) {
	switch {
	case a.Removed:
		return false, a.Name + " is no longer configured"
	case t.Stopping:
		return false, "fairlead stops"
	case t.Hold.On:
		return false, "the team is held"
	}
	if limit := t.OverLimit(a, at); limit != "" {
		return false, limitWords + limit
	}
	return true, ""
}

// mayControl asks what holds for control alone beside that: a pause is a word to it, and to
// nobody else.
func (t *Team) mayControl(a *Agent, at time.Time) (ok bool, why string) {
	if ok, why = t.mayWork(a, at); !ok {
		return false, why
	}
	if a.Control.Policy.Foreign != (a.Control.State == control.Foreign) {
		return false, "its loop is configured otherwise now"
	}
	if a.Control.State != control.Foreign && !a.Control.StillWanted() {
		return false, fmt.Sprintf("desired_state is %s now", a.Control.File(false).Desired)
	}
	return true, ""
}

// TodoRun reads a run's errands off its state, but for those that Next does: the processes of
// its steps on the bench, and what it has to be told of the world.
func (t *Team) TodoRun(id string, at time.Time) []Todo {
	r := t.Runs[id]
	if r == nil {
		return nil
	}
	var todo []Todo
	for step := range r.Todo(workflow.Now{At: at, Held: true}) {
		switch step.Do {
		case workflow.RunIt, workflow.EndIt:
			todo = append(todo, t.todoOnBench(id, step)...)
		case workflow.LookForIt, workflow.WeighIt, workflow.FindItems, workflow.AskThem:
			todo = append(todo, Todo{Key: step.Key, Do: Errand(step.Do), Run: id, Step: step})
		case workflow.SkipIt, workflow.StartIt: // Next
		}
	}
	return todo
}

func (t *Team) todoOnBench(id string, step workflow.Todo) []Todo {
	s := t.Bench.Sessions[id+"/"+string(step.Lease.Step)]
	switch {
	case s == nil:
		return nil // its agent's seat has it
	case s.Phase == Opened:
		return []Todo{{Key: "start/" + s.ID, Do: StartSession, Run: id, Session: *s, Step: step}}
	case s.Ending != "":
		return []Todo{{Key: "end/" + s.ID + "/" + strconv.FormatBool(s.Now), Do: EndSession, Run: id, Session: *s, Step: step}}
	default:
		return nil
	}
}

// DeadlineRun is the next moment at which a run changes by itself; zero: never. TimerFired is
// for then.
func (t *Team) DeadlineRun(id string) time.Time {
	r := t.Runs[id]
	if r == nil {
		return time.Time{}
	}
	next := r.Deadline().At
	if _, _, at := t.benchDeadline(id, r); !at.IsZero() && (next.IsZero() || at.Before(next)) {
		next = at
	}
	if at := t.limitDeadline(id, r); !at.IsZero() && (next.IsZero() || at.Before(next)) {
		next = at
	}
	return next
}

// Deadline is the next moment at which an agent's state changes by itself; zero: never.
func (t *Team) Deadline(a *Agent) time.Time {
	_, next := t.sessionDeadline(a)
	for _, at := range []time.Time{t.talkDeadline(a), t.dayDeadline(a, next), a.liftAt()} {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	retry := a.Control.Retry()
	if retry.IsZero() || t.Hold.On || t.Stopping || a.Removed {
		return next
	}
	if a.Control.State == control.Foreign && t.OverLimit(a, retry) != "" {
		retry = retry.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) // the day after; limits are of a day
	}
	if next.IsZero() || retry.Before(next) {
		return retry
	}
	return next
}

// sessionDeadline is when the session under way has used its time up. A foreign loop's
// program is no session, and one that was asked to end has its grace period.
func (t *Team) sessionDeadline(a *Agent) (limit time.Duration, at time.Time) {
	limit = t.sessionLimit(a)
	s := a.Session
	if limit == 0 || s == nil || s.Phase != Running || s.Ending != "" || s.Kind == control.Program {
		return limit, time.Time{}
	}
	if s.Talks() {
		if !s.Answers() || s.Talk.Begun.IsZero() {
			return limit, time.Time{}
		}
		return limit, s.Talk.Begun.Add(limit) // of each answer: between them it costs nothing
	}
	return limit, s.StartedAt.Add(limit)
}
