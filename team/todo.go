package team

import (
	"fmt"
	"strconv"
	"time"

	"github.com/fairlead-dev/fairlead/machine/control"
)

// Errand is a kind of thing to be done in the world.
type Errand string

const (
	StartSession Errand = "start_session"
	EndSession   Errand = "end_session"
	WriteFile    Errand = "write_file"
)

// Todo is an errand that the team's state asks for. The same state gives the same key;
// doing it twice does nothing more.
type Todo struct {
	Key     string
	Do      Errand
	Agent   string
	Session Session // for StartSession and EndSession
}

// Todo reads an agent's errands off its state. It is asked again after every change, and
// after a crash: nothing has to be remembered.
func (t *Team) Todo(a *Agent) []Todo {
	var todo []Todo
	if s := a.Session; s != nil && s.Phase == Opened {
		todo = append(todo, Todo{Key: "start/" + s.ID, Do: StartSession, Agent: a.Name, Session: *s})
	}
	if s := a.Session; s != nil && s.Phase == Running && s.Ending != "" {
		todo = append(todo, Todo{Key: "end/" + s.ID + "/" + strconv.FormatBool(s.Now), Do: EndSession, Agent: a.Name, Session: *s})
	}
	if !a.Control.Stamp.IsZero() && a.Control.State != control.Absent {
		todo = append(todo, Todo{Key: "file/" + a.Name + "/" + a.Control.Stamp.Format(time.RFC3339Nano), Do: WriteFile, Agent: a.Name})
	}
	return todo
}

// MayStart is asked last, when everything is ready and the next thing is the process
// itself. A session that nobody wants any more is withdrawn, with this reason.
func (t *Team) MayStart(agent, session string, at time.Time) (ok bool, why string) {
	a := t.Agents[agent]
	switch {
	case a == nil || a.Session == nil || a.Session.ID != session || a.Session.Phase != Opened:
		return false, "it is not open"
	case a.Removed:
		return false, agent + " is no longer configured"
	case a.Control.Policy.Foreign != (a.Control.State == control.Foreign):
		return false, "its loop is configured otherwise now"
	case t.Stopping:
		return false, "fairlead stops"
	case t.Hold.On:
		return false, "the team is held"
	case a.Session.Ending != "":
		return false, a.Session.Ending
	}
	if limit := t.OverLimit(a, at); limit != "" {
		return false, "limit reached: " + limit
	}
	if a.Session.For == "control" && a.Control.State != control.Foreign && !a.Control.StillWanted() {
		return false, fmt.Sprintf("desired_state is %s now", a.Control.File(false).Desired)
	}
	return true, ""
}

// Deadline is the next moment at which an agent's state changes by itself; zero: never.
func (t *Team) Deadline(a *Agent) time.Time {
	_, next := t.sessionDeadline(a)
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
	return limit, s.StartedAt.Add(limit)
}
