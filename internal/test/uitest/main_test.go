package uitest_test

import (
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/driver/script"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestMain lets this program run as a scripted agent, because driver script starts its own
// executable.
func TestMain(m *testing.M) {
	script.Intercept()
	release := uitest.KeepBrowser()
	code := m.Run()
	release()
	os.Exit(code)
}
