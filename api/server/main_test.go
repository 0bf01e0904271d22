package server

import (
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
)

func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0") // every program here would wait a second at its end
	os.Exit(leaktest.Main(m))
}
