package worktree

import (
	"github.com/fairlead-dev/fairlead/machine"
)

// RefuseRun is the refusal to start a run, with its reason.
func RefuseRun(id, reason string) error {
	return &machine.Refusal{Subject: "run " + id, Event: "run_asked", State: "asked", Row: "W1", Reason: reason}
}
