package uitest_test

import (
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
	"github.com/fairlead-dev/fairlead/process/driver/script"
)

// TestMain lets this program run as a scripted agent, because driver script starts its own
// executable.
func TestMain(m *testing.M) {
	script.Intercept()
	testsize.Parallel(4) // a test waits for the frames of its page about as long as it computes
	release := uitest.KeepBrowser()
	code := m.Run()
	release()
	os.Exit(code)
}
