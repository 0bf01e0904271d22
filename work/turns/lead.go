package turns

import (
	"context"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// The lead receives the crew's actions in its own session, in the same way as an agent receives its
// channels' actions: one at a time, each once.

// LeadWords describe an action for the lead.
func LeadWords(do channel.ActionKind) string {
	switch crew.ActionKind(do) {
	case crew.TellSummon:
		return "it leads the team, and is to summon it"
	case crew.TellWake:
		return "it leads the team, and is to wake it"
	case crew.TellRegister:
		return "it leads the team, and is to register a member that it listed"
	default:
		return "it leads the team, and is to be asked who is awake"
	}
}

// confirmLeadAction acknowledges an action of the lead for which no text had to be written.
func (c *Controller) confirmLeadAction(ctx context.Context, m *sessions.Slot, n uint64) error {
	_, err := c.loop.Do(ctx, loop.Request{
		Event: loop.EventBy(sessions.ByShim, "", crew.ActionReceived{N: n}), Agent: m.Conf.Name, Look: c.clearTelling(m),
	})
	if loop.IsAnswer(err) {
		return nil
	}
	return err
}
