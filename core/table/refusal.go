package table

import (
	"fmt"
	"strings"
)

// Refusal says that a request is not possible in the current state, and why. It is an answer and
// not a failure, and it changes nothing. It names the request, the state, the row that forbids it,
// if one does, and what is allowed (SPEC X4).
type Refusal struct {
	Subject string   `json:"subject"`          // an agent, or an agent in a #channel
	Event   string   `json:"event"`            // the request
	State   string   `json:"state"`            // the current state
	Row     string   `json:"row,omitempty"`    // the row that forbids it; empty if no row accepts it
	Reason  string   `json:"reason,omitempty"` // the text for Row
	Takes   []string `json:"takes,omitempty"`  // what is allowed now
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
