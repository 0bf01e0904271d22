package channels

import (
	"errors"

	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/machine/crew"
)

// The lead of the team is told what the crew asks for in its own session, in the way in which an
// agent is told what its channels ask for: one thing at a time, each once.

// errNobodyLeft says that an errand is about nobody any more: whoever was to be woken is awake.
var ErrNobodyLeft = errors.New("nobody is left whom it is about")

// leadWords say what the lead is to be told.
func LeadWords(do channel.ActionKind) string {
	switch crew.ActionKind(do) {
	case crew.TellSummon:
		return "it leads the team, and is to summon it"
	case crew.TellWake:
		return "it leads the team, and is to wake it"
	case crew.TellRegister:
		return "it leads the team, and is to register somebody whom it listed"
	default:
		return "it leads the team, and is to be asked who is awake"
	}
}
