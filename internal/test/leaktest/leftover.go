// Package leaktest runs the tests of a package, and looks afterwards that all they started has ended.
//
// A test is over when it has seen what it wanted, and some goroutine of it may then be on its way
// out: a connection that is being closed, a process that is being waited for. On a machine with much
// other work that way takes seconds, and nobody is to blame. What is still there after a time that
// no way out takes was left behind, and is shown.
//
// The one promise: tests that leave nothing behind are never said to.
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
