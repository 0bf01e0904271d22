package view

import (
	"fmt"
)

// Whether a status is true is known where nothing contradicts it. The badge stays what
// current_state says (J5); this stands beside it.
const (
	CertaintyKnown   = "known"
	CertaintyUnknown = "unknown"
)

// contradicted notes what speaks so much against the status that nobody knows it.
func (v *AgentView) Contradicted(format string, args ...any) {
	v.Doubt, v.Certainty = fmt.Sprintf(format, args...), CertaintyUnknown
}
