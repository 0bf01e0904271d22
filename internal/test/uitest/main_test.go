package uitest_test

import (
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/driver/script"
)

// TestMain lets this program play the script of an agent: driver script starts its own executable.
func TestMain(m *testing.M) {
	script.Intercept()
	os.Exit(m.Run())
}
