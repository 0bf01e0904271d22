package prompts

import (
	_ "embed"
	"strings"
)

//go:embed leadinstructions.md
var leadInstructions string

// LeadInstructions returns what the lead of a crew must know: what it receives, which markers it emits and
// when, and how it speaks for the others (seed 001, CLAUDE.md addition). The text is Markdown for the file
// that its program reads at the start.
func LeadInstructions(lead string) string {
	return strings.NewReplacer("{lead}", shortLine(lead), "{eyes}", faceEyes, "{mouths}", faceMouths).Replace(leadInstructions)
}

// Values that Mission Control can draw. Other values are accepted and drawn as one of these.
const (
	faceEyes   = "standard, round, wide, narrow, soft, sharp, sleepy, calm, happy, starry, wink, curious, spectacles, dots, bright"
	faceMouths = "gentle, smile, grin, open, small, straight, tilted, smirk, serious, wavy, round, cat, laugh, tongue"
)
