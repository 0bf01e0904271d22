package team

import (
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/control"
)

// Machine is one state machine as people read it. Everything in it comes from the table
// that decides.
type Machine struct {
	Name    string        `json:"name"`    // control, session
	Promise string        `json:"promise"` // what it keeps, in one sentence
	Rows    []machine.Row `json:"rows"`    // by id
	Mermaid string        `json:"mermaid"` // a state diagram
	Matrix  string        `json:"matrix"`  // every pair of an event and a state
}

// Machines lists the machines of a team, in the order in which a reader should meet them.
func Machines() []Machine {
	return []Machine{
		{
			Name: "control", Promise: "Nothing is started that the newest wish does not ask for.",
			Rows: control.Table.Rows(), Mermaid: control.Table.Mermaid(), Matrix: control.Table.Matrix(),
		},
		{
			Name: "session", Promise: "An agent has at most one session, and it is in the journal before its process exists.",
			Rows: SessionTable.Rows(), Mermaid: SessionTable.Mermaid(), Matrix: SessionTable.Matrix(),
		},
	}
}
