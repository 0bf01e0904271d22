package node

import (
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Main(m)) }
