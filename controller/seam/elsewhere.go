package seam

import (
	"fmt"
)

// Fairlead is not the only program that can open an agent's conversation: a person may have it open
// in a terminal, or the agent program may have a background service. Two processes in one
// conversation overwrite each other's memory, so Fairlead searches for such a process before it
// resumes a conversation. It cannot find a program that began the conversation itself and shows its
// name neither in an argument, nor in an environment variable, nor in an open file.

// ProcessConflict is a process outside of Fairlead that has a conversation open.
type ProcessConflict struct {
	PID     int
	Program string // as the system reports it
	Sign    string // how the process shows it, as text
	Under   string // what keeps it running: tmux, screen or a service; empty if unknown
}

func (o ProcessConflict) String() string {
	text := fmt.Sprintf("process %d (%s) has it open: %s", o.PID, o.Program, o.Sign)
	if o.Under != "" {
		text += "; it runs under " + o.Under
	}
	return text
}
