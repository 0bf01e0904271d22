// Package leaktest runs the tests of a package, and then checks that everything they started has
// ended.
//
// When a test returns, some of its goroutines may still be ending: a connection is being closed, or
// a process is being waited for. On a busy machine that takes seconds and is not a fault. A
// goroutine that still runs after a generous time limit counts as leaked and is printed.
//
// The one promise: tests that leave nothing running are never reported.
package leaktest

import (
	"fmt"
	"os"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"go.uber.org/goleak"
)

const (
	patience  = time.Minute            // reached only if a goroutine was left
	lookEvery = 100 * time.Millisecond // each check stops the world, and has a time limit of its own
)

// Main runs the tests like m.Run. It returns exit code 1 if the tests passed but left goroutines
// running. Goroutines with one of the functions left are not counted: a library leaves them.
func Main(m interface{ Run() int }, left ...string) (code int) {
	if code = m.Run(); code != 0 {
		return code // goroutines of a failed test are expected
	}
	var options []goleak.Option
	for _, function := range left {
		options = append(options, goleak.IgnoreAnyFunction(function))
	}
	err := goleak.Find(options...)
	for late := time.Now().Add(patience); err != nil && time.Now().Before(late); err = goleak.Find(options...) {
		wait.Pause(lookEvery)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "after %v tests have left behind what they started: %v\n", patience, err)
		return 1
	}
	return 0
}
