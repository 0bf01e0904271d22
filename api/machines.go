package api

import (
	"context"

	"github.com/fairlead-dev/fairlead/machine/control"
)

func (s *Server) machines(context.Context, *nothing) (*Machines, error) {
	return &Machines{Machines: []MachineView{
		{Name: "control", Mermaid: control.Table.Mermaid(), Rows: control.Table.Rows()},
	}}, nil
}
