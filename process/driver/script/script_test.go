package script

import (
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
)

func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" { // with the race detector, every agent would sleep for a second before it ends
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	Intercept()
	os.Exit(leaktest.Main(m))
}
