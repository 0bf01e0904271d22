package sessions

import (
	"context"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// TellAgent decides one event about an agent before the loop runs.
func (c *Controller) TellAgent(ctx context.Context, agent string, what any) error {
	return c.loop.Tell(ctx, &team.Event{Actor: ByRecovery, Agent: agent, What: what})
}

// TellSlot decides one event about a slot before the loop runs.
func (c *Controller) TellSlot(ctx context.Context, m *Slot, what any) error {
	return c.loop.Tell(ctx, m.Event(ByRecovery, what))
}

// FoundAs converts the phases of a shim.
var FoundAs = map[shim.Phase]sessionhost.Found{
	shim.NeverStarted: sessionhost.NeverStarted, shim.Running: sessionhost.Running, shim.Exited: sessionhost.Exited,
	shim.Lost: sessionhost.Lost,
}
