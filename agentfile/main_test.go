package agentfile

import (
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/leftover"
)

func TestMain(m *testing.M) { os.Exit(leftover.Main(m)) }
