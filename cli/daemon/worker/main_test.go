package worker

import (
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	_ "github.com/fairlead-dev/fairlead/process/proxy" // runs in a process of this binary
	"github.com/fairlead-dev/fairlead/process/shim"
)

func TestMain(m *testing.M) {
	shim.Intercept()
	os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise every shim would wait a second at its end
	testsize.Parallel(4)
	os.Exit(leaktest.Main(m))
}
