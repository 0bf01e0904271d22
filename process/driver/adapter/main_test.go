package adapter_test

import (
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" { // with the race detector, every child would sleep for a second before it ends
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	if len(os.Args) > 2 && os.Args[1] == programVerb {
		program(os.Args[2])
	}
	adapter.Intercept(plain{})
	testsize.Parallel(6) // most tests wait for programs that do not answer
	os.Exit(leaktest.Main(m))
}
