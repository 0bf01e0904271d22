package status

import (
	"context"
	"time"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/team"
)

// Order is Command that also returns the agent's view with the command applied. It asks for no
// evidence and does not wait for later effects.
func (c *Controller) Order(ctx context.Context, by seam.Actor, agent, desired, note string) (uint64, view.AgentView, error) {
	var view view.AgentView
	seq, err := c.Do(ctx, loop.Request{
		Event: c.agents.CommandEvent(by, agent, desired, note),
		Look: func(t *team.Team) {
			if a := t.Agents[agent]; a != nil {
				view = c.agentView(a)
				view.SetStatus(t.Stopping, c.Now())
			}
		},
	})
	return seq, view, err
}

// Status is the daemon's own status.
type Status struct {
	StartedAt time.Time
	Head      uint64
}

// Status asks the loop, so that an answer shows that the loop runs.
func (c *Controller) Status(ctx context.Context) (Status, error) {
	status := Status{StartedAt: c.started.UTC()}
	err := c.View(ctx, func(*team.Team) { status.Head = c.Head() })
	return status, err
}
