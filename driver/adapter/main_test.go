package adapter_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/fairlead-dev/fairlead/driver/adapter"
)

func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" { // with the race detector every child would sleep for a second before it ends
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	if len(os.Args) > 2 && os.Args[1] == programVerb {
		program(os.Args[2])
	}
	adapter.Intercept(plain{})
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}
