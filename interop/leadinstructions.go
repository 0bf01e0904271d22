package interop

import (
	_ "embed"
	"strings"
)

//go:embed leadinstructions.md
var leadInstructions string

// LeadInstructions is what an agent has to know that leads a team: what it is told, what it emits
// and when, and how it speaks for the others (seed 001, CLAUDE.md addition). It is Markdown, for
// the file that its program reads at the start.
func LeadInstructions(lead string) string {
	return strings.ReplaceAll(leadInstructions, "{lead}", shortLine(lead))
}
