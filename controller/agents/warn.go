package agents

import (
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// warnings maps events of machine control to log messages for people. They stop nothing.
var warnings = map[control.Event]string{
	control.FileMalformed:       "agent_state.json was malformed: its content is kept beside it, and the desired state is pause",
	control.FileTorn:            "agent_state.json was torn by a restart of the machine: it is written again from the journal",
	control.WantedUnknown:       "desired_state is not a word that fairlead knows: it counts as pause",
	control.FailedForGood:       "too many sessions failed in a row: the agent is paused",
	control.OneShotFailed:       "a one-shot session failed",
	control.LimitReached:        "a limit is reached: the session is ended and the agent paused",
	control.PauseStands:         "agent_state.json asks to start an agent that a person paused: the pause is kept; fairlead start, once or cleanup lift it",
	control.CurrentContradicted: "another program wrote current_state: it is corrected",
}

// warn logs each warning once per start for each agent.
func (c *Controller) warn(ch team.Change) {
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
	if ch.Body.Control != nil {
		note = ch.Body.Control.Value.Desired.Note
	}
	c.log.Warn(text, "agent", team.AgentOf(ch.Entity), "row", ch.Row, "note", note)
}
