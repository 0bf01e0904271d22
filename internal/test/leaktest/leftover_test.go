package leaktest

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

type runs func() int

func (r runs) Run() int { return r() }

// TestMainWaits checks that a goroutine that ends slowly is awaited, and that the exit code of a
// failure is kept.
func TestMainWaits(t *testing.T) {
	gone := make(chan struct{})
	slow := runs(func() int {
		go func() {
			wait.Pause(5 * lookEvery) // longer than the time limit of one check
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
		t.Error("Main did not wait for the goroutine")
	}
	if code := Main(runs(func() int { return 3 })); code != 3 {
		t.Errorf("exit code %d", code)
	}
}
