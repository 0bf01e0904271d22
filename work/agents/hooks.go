package agents

import (
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// AgentHooks returns the agents' hooks into the loop.
func (c *Controller) AgentHooks() loop.Hooks {
	return loop.Hooks{
		OnBatch: func(changes []change.Change, _ uint64, t *loop.Touched) {
			for i := range changes {
				c.warn(&changes[i])
				if isOfAgent(&changes[i]) {
					t.Agent(team.AgentOf(changes[i].Entity))
				}
			}
		},
		Act: func(t *loop.Touched) {
			for name := range t.Agents {
				c.writeDue(name)
			}
		},
		Next: func() (next time.Time) {
			for name, a := range c.loop.State().Agents {
				next = table.Earliest(next, c.deadline(a))
				if m := c.Files[name]; m != nil {
					next = table.Earliest(table.Earliest(next, m.Again), m.keptUntil)
				}
			}
			return next
		},
		Due:     c.dueOfAgents,
		Settled: func(bool) bool { return c.filesSettled() },
		Drain:   c.endIntake,
	}
}

// isOfAgent reports whether the entity of a change has the name of the agent that it concerns.
func isOfAgent(ch *change.Change) bool {
	switch ch.Body.(type) {
	case *team.TeamSet, *team.DispatchSet, *team.ChannelConfig, *channel.Set, *crew.Body, *question.Body, *notice.Record:
		return false
	}
	return !strings.HasPrefix(ch.Entity, "run/")
}

// dueOfAgents returns a request for each expired timer of an agent and for each file whose write is
// due again.
func (c *Controller) dueOfAgents(now time.Time) []loop.Request {
	var batch []loop.Request
	for _, name := range c.loop.State().Names() {
		a := c.loop.State().Agents[name]
		if at := c.deadline(a); !at.IsZero() && !now.Before(at) {
			batch = append(batch, loop.Request{Event: &team.Event{Actor: sessions.ByTimer, Agent: name, What: team.TimerFired{}}})
		}
		if m := c.Files[name]; m != nil && m.kept != nil && !now.Before(m.keptUntil) {
			batch = append(batch, c.SeenRequest(*m.kept))
			m.kept, m.keptUntil = nil, time.Time{}
		}
		if m := c.Files[name]; m != nil && !m.Again.IsZero() && !now.Before(m.Again) {
			m.Again = time.Time{}
			if !m.Known {
				c.lookAgain(m)
			}
			batch = append(batch, loop.Request{Agent: name})
		}
	}
	return batch
}

// deadline is the next deadline of an agent. A session that has ended, but whose end is not yet in
// the journal, has none: it may have ended long before, while no daemon ran, and must not be
// reported as timed out.
func (c *Controller) deadline(a *team.Agent) time.Time {
	at := c.loop.State().Deadline(a)
	if at.IsZero() {
		return at
	}
	for _, s := range a.Sessions() {
		if proc := c.sessions.Proc(s.ID); proc != nil && sessions.IsDone(proc) {
			return time.Time{}
		}
	}
	return at
}

// filesSettled reports whether every file is up to date or cannot be written at present.
func (c *Controller) filesSettled() bool {
	for name, m := range c.Files {
		waits := m.Failed != "" || !m.Again.IsZero()
		if m.Writing || (!waits && c.FileDue(m, c.loop.State().Agents[name])) {
			return false
		}
	}
	return true
}

// writeDue writes an agent's file if it is due. It is called after every change, so that no other
// code has to remember to call it.
func (c *Controller) writeDue(name string) {
	a, m := c.loop.State().Agents[name], c.Files[name]
	if a == nil || m == nil || c.loop.Holding() {
		return
	}
	for todo := range c.loop.State().Actions(a) {
		if todo.Do == team.WriteFile {
			c.writeFile(m, a)
		}
	}
	c.writeNext()
}

// warnings maps events of machine control to log messages for people. They stop nothing.
var warnings = map[control.Event]string{
	control.FileMalformed:       "agent_state.json was malformed: its content is kept beside it, and the desired state is pause",
	control.FileTorn:            "agent_state.json was torn by a restart of the machine: it is written again from the journal",
	control.WantedUnknown:       "desired_state is not a word that fairlead knows: it counts as pause",
	control.FailedForGood:       "too many sessions failed in a row: the agent is paused",
	control.OneShotFailed:       "a one-shot session failed",
	control.LimitReached:        "a limit is reached: the session is ended and the agent paused",
	control.RaiseAsked:          "agent_state.json asks for more work while a session runs that can write it: a person is asked; fairlead inbox shows it",
	control.PauseStands:         "agent_state.json asks to start an agent that a person paused: the pause is kept; fairlead start, once or cleanup lift it",
	control.CurrentContradicted: "another program wrote current_state: it is corrected",
}

// warn logs each warning once per start for each agent.
func (c *Controller) warn(ch *change.Change) {
	text, known := warnings[control.Event(ch.Trigger)]
	if !known || ch.Machine != "control" { // steps have an event of the same name
		return
	}
	key := ch.Entity + " " + ch.Trigger
	if c.warned[key] {
		return
	}
	c.warned[key] = true
	note := ""
	if set := change.As[control.Body](ch.Body); set != nil {
		note = set.Value.Desired.Note
	}
	c.log.Warn(text, "agent", team.AgentOf(ch.Entity), "row", ch.Row, "note", note)
}
