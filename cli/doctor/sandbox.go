package doctor

import (
	"context"
	"fmt"

	"github.com/fairlead-dev/fairlead/sandbox"
)

// LookAtSandbox tests what the kernel can prevent a session's MAIN from doing, or says why it
// cannot. A kernel without Landlock is not a fault: the rules still apply, only this layer is
// missing.
func LookAtSandbox(ctx context.Context) Finding {
	abi, why := sandbox.Supported()
	if why != "" {
		return Finding{OK: true, About: "sandbox", What: "none: " + why + "; a session's MAIN is held by the rules alone, and an agent with `sandbox: workspace` is not started"}
	}
	if err := sandbox.Probe(ctx); err != nil {
		return Finding{
			About: "sandbox", What: err.Error(),
			Do: "`dispatch: {sandbox: off}` in fairlead.yaml does without; where fairlead itself runs in a sandbox or a container, that may forbid it",
		}
	}
	what := fmt.Sprintf("Landlock %d, tried just now: a session's MAIN in a process of its own writes below its outputs and nowhere else, and an agent with `sandbox: workspace` in its own places", abi)
	if less := sandbox.NotHeld(); less != "" {
		what += "; " + less
	}
	return Finding{OK: true, About: "sandbox", What: what}
}
