package status

import (
	"context"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/view"
)

// Hosts shows the machines on which the team's sessions run.
func (c *StatusController) Hosts(context.Context) (view.Hosts, error) {
	return view.Hosts{Hosts: []view.Host{}, Waiting: []view.WaitingSession{}}, nil
}

// DrainHost lets no new session begin on a host, which leaves when its last one has ended.
func (c *StatusController) DrainHost(_ context.Context, _ seam.Actor, name string) (uint64, error) {
	return 0, noHosts(name, "drain_asked")
}

// RemoveHost takes a host out of the team. Sessions that run there end by their deadline.
func (c *StatusController) RemoveHost(_ context.Context, _ seam.Actor, name string) (uint64, error) {
	return 0, noHosts(name, "removed")
}

func noHosts(name, event string) error {
	return &machine.Refusal{Subject: "host " + name, Event: event, State: "none", Reason: "this repository has no other hosts; `fairlead cluster init` begins"}
}
