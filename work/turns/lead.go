package turns

import (
	"errors"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/crew"
)

// The lead receives the crew's actions in its own session, in the same way as an agent receives its
// channels' actions: one at a time, each once.

// ErrNoRecipient means that an action concerns no crew member any more: all that were to be woken
// are awake.
var ErrNoRecipient = errors.New("the action concerns no crew member any more")

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
