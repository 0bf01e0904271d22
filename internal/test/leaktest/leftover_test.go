package leaktest

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

type runs func() int

func (r runs) Run() int { return r() }

// Who is slow on the way out is waited for, and a failure stays what it was.
func TestMainWaits(t *testing.T) {
	gone := make(chan struct{})
	slow := runs(func() int {
		go func() {
			wait.Pause(5 * lookEvery) // more than one look has patience for
			close(gone)
		}()
		return 0
	})
	if code := Main(slow); code != 0 {
		t.Errorf("exit code %d", code)
	}
	select {
	case <-gone:
	default:
		t.Error("it was not waited for")
	}
	if code := Main(runs(func() int { return 3 })); code != 3 {
		t.Errorf("exit code %d", code)
	}
}
