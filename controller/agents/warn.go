package agents

import (
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// warnings are what a person should know of a change, though nothing stops for it; by what
// happened, in the words of the machines.
var warnings = map[control.Event]string{
	control.FileMalformed:       "agent_state.json was no agent state: its bytes are kept beside it, and pause is wanted",
	control.FileTorn:            "agent_state.json was torn by a restart of the machine: it says again what the journal says",
	control.WantedUnknown:       "desired_state is no word that fairlead knows: it counts as pause",
	control.FailedForGood:       "session after session failed: the agent is paused",
	control.OneShotFailed:       "a one-shot failed",
	control.LimitReached:        "a limit is reached: the session is ended, the agent paused",
	control.CurrentContradicted: "somebody else wrote current_state: it is corrected",
}

// warn says it once a start for each agent.
func (e *Controller) warn(ch team.Change) {
	text, known := warnings[control.Event(ch.Trigger)]
	if !known || ch.Machine != "control" { // a step may fail for good, too
		return
	}
	key := ch.Entity + " " + ch.Trigger
	if e.warned[key] {
		return
	}
	e.warned[key] = true
	note := ""
	if ch.Body.Control != nil {
		note = ch.Body.Control.Value.Desired.Note
	}
	e.log.Warn(text, "agent", loop.AgentOf(ch.Entity), "row", ch.Row, "note", note)
}
