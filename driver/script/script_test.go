package script

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" { // with the race detector every agent would sleep for a second before it ends
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	Intercept()
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}
