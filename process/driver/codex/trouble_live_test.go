package codex_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/internal/test/livetest"
	"github.com/fairlead-dev/fairlead/process/driver/codex"
)

// Without a network codex waits without end, and says so.
var speaks = drivertest.Speaks{Program: "codex", Waits: []string{"gone"}}

func TestProviderTroubles(t *testing.T) { drivertest.ProviderTroubles(t, speaks) }

// For other recordings codex does not try again, so that they are short. Here it tries twice.
func TestRecordTroubles(t *testing.T) {
	livetest.RecordTroubles(t, codex.Driver{}, speaks, livetest.Codex, func(p *livetest.Program) {
		file := filepath.Join(p.Home, ".codex", "config.toml")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "_max_retries = 0", "_max_retries = 2")), 0o600); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRecordSubagent records what codex says of a subagent.
func TestRecordSubagent(t *testing.T) {
	livetest.RecordSubagent(t, codex.Driver{}, "codex", livetest.Codex)
}
