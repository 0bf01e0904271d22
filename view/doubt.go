package view

import (
	"fmt"
)

// Certainty of an agent's status: known unless evidence contradicts it. The badge always shows
// current_state (J5); the certainty is shown beside it.
const (
	CertaintyKnown   = "known"
	CertaintyUnknown = "unknown"
)

// Contradicted records evidence against the status, strong enough to make it unknown.
func (v *AgentView) Contradicted(format string, args ...any) {
	v.Doubt, v.Certainty = fmt.Sprintf(format, args...), CertaintyUnknown
}
