package machine

import (
	"fmt"
	"strings"
)

// Refusal is an answer, not a failure: what was asked cannot be had in this state.
// It changes nothing, and says what was asked, what the state is, which row forbids
// it where one does, and what would be taken (SPEC X4).
type Refusal struct {
	Subject string   `json:"subject"`          // who: an agent, or agent in #channel
	Event   string   `json:"event"`            // what was asked
	State   string   `json:"state"`            // what the state is
	Row     string   `json:"row,omitempty"`    // the row that forbids it; empty where no row takes it
	Reason  string   `json:"reason,omitempty"` // in words, where a row forbids it
	Takes   []string `json:"takes,omitempty"`  // what would be allowed now
}

func (r *Refusal) Error() string {
	text := fmt.Sprintf("%s: cannot take %s while %s", r.Subject, r.Event, r.State)
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	if r.Row != "" {
		text += " [" + r.Row + "]"
	}
	if len(r.Takes) > 0 {
		text += " (takes " + strings.Join(r.Takes, ", ") + ")"
	}
	return text
}
