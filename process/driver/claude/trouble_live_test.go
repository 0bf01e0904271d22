package claude_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/internal/test/livetest"
	"github.com/fairlead-dev/fairlead/process/driver/claude"
)

// Qwen Code tries in silence, and after 429 and 5xx for more than ten minutes.
var (
	speaksClaude = drivertest.Speaks{Program: "claude"}
	speaksQwen   = drivertest.Speaks{Program: "qwen", Silent: true, Waits: []string{"limit", "overloaded"}}
)

func TestProviderTroubles(t *testing.T) {
	drivertest.ProviderTroubles(t, speaksClaude)
	drivertest.ProviderTroubles(t, speaksQwen)
}

// Claude Code tries ten times, which takes minutes. Two times say the same.
func TestRecordTroubles(t *testing.T) {
	livetest.RecordTroubles(t, claude.Driver{}, speaksClaude, livetest.Claude, func(p *livetest.Program) {
		p.Env = append(p.Env, "CLAUDE_CODE_MAX_RETRIES=2")
	})
}

func TestRecordTroublesOfQwen(t *testing.T) {
	livetest.RecordTroubles(t, claude.Driver{}, speaksQwen, livetest.QwenStream, nil)
}

// TestRecordSubagent records what Claude Code asks for a subagent.
func TestRecordSubagent(t *testing.T) {
	livetest.RecordSubagent(t, claude.Driver{}, "claude", livetest.Claude)
}
