package engine

import (
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/driver/script"
	"github.com/fairlead-dev/fairlead/holder"
	"github.com/fairlead-dev/fairlead/leftover"
)

// The test binary is executed again as a holder and as the scripted agent.
func TestMain(m *testing.M) {
	holder.Intercept()
	script.Intercept()
	if os.Getenv(foreignLoopWord) != "" {
		foreignLoop()
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // every holder and agent here would wait a second at its end
	os.Exit(leftover.Main(m))
}
