package sessions

import (
	"context"

	"github.com/fairlead-dev/fairlead/team"
)

// tell has one event decided before the loop runs.
func (e *Controller) TellAgent(ctx context.Context, agent string, what any) error {
	return e.Loop.Tell(ctx, &team.Event{Actor: ByRecovery, Agent: agent, What: what})
}

// tellOf is tell about a seat.
func (e *Controller) TellSlot(ctx context.Context, m *Slot, what any) error {
	return e.Loop.Tell(ctx, m.Event(ByRecovery, what))
}
