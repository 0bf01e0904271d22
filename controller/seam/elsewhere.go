package seam

import (
	"fmt"
)

// A conversation belongs to the program that holds it, and we are not the only ones who can start that
// program: a person has it open in a terminal, or the program has a service of its own in the
// background. Two of them in one conversation overwrite each other's memory. So before one is resumed
// we look whether somebody else is in it. What cannot be seen: a program that began the conversation
// by itself and says its name nowhere outside (no argument, no variable, no open file).

// Occupant is a process that is none of ours and has a conversation open.
type Occupant struct {
	PID     int
	Program string // what it is called by the system
	Sign    string // by what it is known, in words
	Under   string // who keeps it running, in words: tmux, screen, a service; empty: nobody that we know
}

func (o Occupant) String() string {
	text := fmt.Sprintf("process %d (%s) has it open: %s", o.PID, o.Program, o.Sign)
	if o.Under != "" {
		text += "; it runs under " + o.Under
	}
	return text
}
