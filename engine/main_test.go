package engine

import (
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/driver/script"
	"github.com/fairlead-dev/fairlead/holder"
)

// The test binary is executed again as a holder and as the scripted agent.
func TestMain(m *testing.M) {
	holder.Intercept()
	script.Intercept()
	os.Exit(m.Run())
}
