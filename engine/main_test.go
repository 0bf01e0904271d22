package engine

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/fairlead-dev/fairlead/driver/script"
	"github.com/fairlead-dev/fairlead/holder"
)

// The test binary is executed again as a holder and as the scripted agent.
func TestMain(m *testing.M) {
	holder.Intercept()
	script.Intercept()
	if os.Getenv(foreignLoopWord) != "" {
		foreignLoop()
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // every holder and agent here would wait a second at its end
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
