package seam

import (
	"context"

	"github.com/fairlead-dev/fairlead/agentfile"
)

// Observer reads what a recovery would find, and changes nothing.
type Observer interface {
	// Session returns the outcome of a session, and its process if it runs. It fails if the shim
	// does not answer, with a *Fenced if a daemon with a higher epoch has controlled it.
	Session(ctx context.Context, session string, epoch uint64) (found Found, pid int, err error)

	// File returns the observations of an agent's agent_state.json that Files would deliver first:
	// content recovered from replaced files (FromSwap), then the current file.
	File(ctx context.Context, agent, folder string) ([]agentfile.Seen, error)
}
