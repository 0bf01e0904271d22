package loop

import (
	"runtime"
	"testing"
)

// On a small machine more goroutines may run than it has processors; on another one the number stays.
func TestProcessors(t *testing.T) { //nolint:paralleltest // it changes the whole process
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for processors, want := range map[int]int{1: processorsMin, 2: processorsMin, 16: 16} {
		runtime.GOMAXPROCS(processors)
		if got := Processors(); got != want {
			t.Errorf("%d processors: %d, want %d", processors, got, want)
		}
	}
}
