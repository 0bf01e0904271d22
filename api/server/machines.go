package server

import (
	"context"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/read/view"
)

func handleMachines(_ context.Context, s *Server, _ *nothing) (*api.Machines, error) {
	all := &api.Machines{}
	for _, m := range view.Machines() {
		all.Machines = append(all.Machines, api.MachineView{Name: m.Name, Promise: m.Promise, Mermaid: m.Mermaid, Rows: some(m.Rows)})
	}
	return all, nil
}
