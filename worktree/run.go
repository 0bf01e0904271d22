package worktree

import (
	"github.com/fairlead-dev/fairlead/machine"
)

func RefuseRun(id, reason string) error {
	return &machine.Refusal{Subject: "run " + id, Event: "run_asked", State: "asked", Row: "W1", Reason: reason}
}
