package agents

import (
	"fmt"

	"github.com/fairlead-dev/fairlead/config"
)

// Summary describes an agent's file as it was found at the start, for a plan.
func (m *AgentFile) Summary() (text string, ok bool) {
	switch {
	case m.Conf.Workspace == "" || m.Conf.Loop == config.LoopForeign && !m.Known:
		return "", true
	case m.Failed != "":
		return "agent_state.json: " + m.Failed, false
	case !m.Known:
		return "agent_state.json was not read", false
	case m.missing:
		return "there is no agent_state.json", true
	case m.State.DesiredState == "":
		return "agent_state.json is malformed", false
	}
	return fmt.Sprintf("agent_state.json says desired %s (at %s), current %s", m.State.DesiredState, m.State.Timestamp,
		m.State.CurrentState), true
}
