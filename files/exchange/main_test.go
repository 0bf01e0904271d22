package exchange_test

import (
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(asideWord); folder != "" {
		watchUntilKilled(folder)
		return
	}
	os.Exit(leaktest.Main(m))
}
