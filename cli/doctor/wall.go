package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// LookAtSandbox tests what the kernel can prevent a session's MAIN from doing, or says why it
// cannot. A kernel without Landlock is not a fault: the rules still apply, only this layer is
// missing.
func LookAtSandbox(ctx context.Context) Finding {
	can := sandbox.Whole()
	abi, why := sandbox.Supported()
	if why != "" {
		return Finding{
			OK: true, About: "sandbox",
			What: "none: " + why + "; a session's MAIN is held by the rules alone; " + wallFound(can), Do: wallHelp(can), Wall: &can,
		}
	}
	if can.By == sandbox.ByNothing {
		return Finding{
			About: "sandbox", What: "the kernel has what is needed, and nothing can be made of it: " + can.WhyNotMore(), Wall: &can,
			Do: "`dispatch: {sandbox: off}` in fairlead.yaml does without; where fairlead itself runs in a sandbox or a container, that may forbid it",
		}
	}
	what := fmt.Sprintf("Landlock %d, tried just now: a session's MAIN in a process of its own writes below its outputs and nowhere else, and an agent with `sandbox: workspace` in its own places", abi)
	if less := sandbox.NotHeld(); less != "" {
		what += "; " + less
	}
	return Finding{OK: true, About: "sandbox", What: what + "; " + wallFound(can), Do: wallHelp(can), Wall: &can}
}

// wallFound says what the walls of agents hold here, and why not more: a sentence for each row, and the reason of each trial that
// failed.
func wallFound(can sandbox.Ability) string {
	words := []string{"walls around agents are made of " + string(can.By)}
	if can.By == sandbox.ByNothing {
		words = append(words, "an agent with `sandbox: workspace` is not started")
	}
	for _, row := range sandbox.Rows {
		if slices.Contains(can.Unheld, row) {
			words = append(words, fmt.Sprintf("%s is not held: %s", row, row.Unheld()))
		}
	}
	if why := can.WhyNotMore(); why != "" {
		words = append(words, "better was tried: "+why)
	}
	return strings.Join(words, "; ")
}

// wallHelp is what helps against each reason, a line each. The lines of a command follow unchanged, so that it can be copied.
func wallHelp(can sandbox.Ability) string {
	var lines []string
	for _, r := range can.Why {
		lines = append(lines, strings.Join(r.Do, "\n"+doIndent+"or: "))
	}
	return strings.Join(lines, "\n"+doIndent)
}
