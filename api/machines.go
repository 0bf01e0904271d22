package api

import (
	"context"

	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/team"
)

// Machines is every state machine that stands behind the journal.
type Machines struct {
	Machines []MachineView `json:"machines" nullable:"false"`
}

// MachineView is one state machine, made from its table.
type MachineView struct {
	Name    string        `json:"name"`
	Promise string        `json:"promise" doc:"What it keeps, in one sentence"`
	Mermaid string        `json:"mermaid" doc:"A state diagram in Mermaid's language"`
	Rows    []machine.Row `json:"rows" nullable:"false" doc:"By id"`
}

func (s *Server) machines(context.Context, *nothing) (*Machines, error) {
	all := &Machines{}
	for _, m := range team.Machines() {
		all.Machines = append(all.Machines, MachineView{Name: m.Name, Promise: m.Promise, Mermaid: m.Mermaid, Rows: some(m.Rows)})
	}
	return all, nil
}
