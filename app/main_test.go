package app

import (
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/process/driver/acp"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/claude"
	"github.com/fairlead-dev/fairlead/process/driver/codex"
	"github.com/fairlead-dev/fairlead/process/driver/script"
	_ "github.com/fairlead-dev/fairlead/process/proxy" // runs in a process of this binary
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/shim"
)

// The test binary is executed again as a shim and as the scripted agent.
func TestMain(m *testing.M) {
	shim.Intercept()
	sandbox.Intercept()
	script.Intercept()
	adapter.Intercept(acp.Driver{}, claude.Driver{}, codex.Driver{})
	if os.Getenv(foreignLoopWord) != "" {
		foreignLoop()
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0")   // otherwise every shim and agent would wait a second at its end
	os.Setenv("GIT_CONFIG_GLOBAL", os.DevNull) // independent of the settings of the person who runs the tests
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	testsize.Parallel(6) // most tests wait for processes or for the disk
	os.Exit(leaktest.Main(m))
}
