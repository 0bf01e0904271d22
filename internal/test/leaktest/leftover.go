// Package leaktest runs the tests of a package, and then checks that everything they started has
// ended.
//
// When a test returns, some of its goroutines may still be ending: a connection is being closed, or
// a process is being waited for. On a busy machine that takes seconds and is not a fault. Whatever
// is still running after a generous time limit counts as leaked and is printed.
//
// The promise: tests that leave nothing running are never reported.
package leaktest

import (
	"fmt"
	"os"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"go.uber.org/goleak"
)

const (
	patience  = time.Minute            // only where something was left behind is it waited so long
	lookEvery = 100 * time.Millisecond // each look stops the world, and has some patience of its own
)

// Main is m.Run, and gives exit code 1 where goroutines were left behind by tests that passed.
func Main(m interface{ Run() int }) (code int) {
	if code = m.Run(); code != 0 {
		return code // what a failed test leaves behind is no news
	}
	err := goleak.Find()
	for late := time.Now().Add(patience); err != nil && time.Now().Before(late); err = goleak.Find() {
		wait.Pause(lookEvery)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "after %v tests have left behind what they started: %v\n", patience, err)
		return 1
	}
	return 0
}
