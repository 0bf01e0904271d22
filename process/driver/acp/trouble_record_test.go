package acp

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/internal/test/livetest"
)

// The protocol has no message about a provider, and these programs try again in silence: Qwen Code after 429 and 5xx for more than ten
// minutes, the others for up to four.
var (
	speaksGemini   = drivertest.Speaks{Program: "gemini", Silent: true}
	speaksOpencode = drivertest.Speaks{Program: "opencode", Silent: true}
	speaksQwen     = drivertest.Speaks{Program: "qwen", Silent: true, Waits: []string{"limit", "overloaded"}}
)

func TestProviderTroubles(t *testing.T) {
	drivertest.ProviderTroubles(t, speaksGemini)
	drivertest.ProviderTroubles(t, speaksOpencode)
	drivertest.ProviderTroubles(t, speaksQwen)
}

func TestRecordTroublesOfGemini(t *testing.T) {
	livetest.RecordTroubles(t, Driver{}, speaksGemini, livetest.Gemini, nil)
}

func TestRecordTroublesOfOpencode(t *testing.T) {
	livetest.RecordTroubles(t, Driver{}, speaksOpencode, livetest.Opencode, nil)
}

func TestRecordTroublesOfQwen(t *testing.T) {
	livetest.RecordTroubles(t, Driver{}, speaksQwen, livetest.Qwen, nil)
}

// TestRecordSubagent records how Qwen Code denies its agent a subagent.
func TestRecordSubagent(t *testing.T) {
	livetest.RecordSubagent(t, Driver{}, "qwen", livetest.Qwen)
}
