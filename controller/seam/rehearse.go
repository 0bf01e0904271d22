package seam

import (
	"context"

	"github.com/fairlead-dev/fairlead/agentfile"
)

// Onlooker sees what a recovery would see, and touches nothing.
type Onlooker interface {
	// Session says what became of a session, and as which process it runs. The error is for
	// a shim that does not answer; a *Fenced where a daemon with a higher epoch was there.
	Session(ctx context.Context, session string, epoch uint64) (found Found, pid int, err error)

	// File is what lies in the place of an agent's agent_state.json, after what was found
	// swapped out beside it (FromSwap): what Files would hand out first.
	File(ctx context.Context, agent, folder string) ([]agentfile.Seen, error)
}
