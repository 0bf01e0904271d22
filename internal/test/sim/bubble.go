package sim

import (
	"flag"
	"runtime"
	"sync"
	"testing"
)

// Play runs f in a goroutine of a running test, also in a program that is not a test. Only a test
// can use a synctest bubble, in which simulated time costs nothing. The command in cmd/sim uses
// Play. The test never ends; it is abandoned when the program's main function returns. Play sets
// GOMAXPROCS to 1, so that goroutines are scheduled in the same order in every replay.
func Play(f func(t *testing.T)) {
	startTest.Do(func() {
		runtime.GOMAXPROCS(1)
		testing.Init()
		if !flag.Parsed() {
			_ = flag.CommandLine.Parse(nil) // otherwise the test would parse the program's own arguments
		}
		go testing.Main(
			func(string, string) (bool, error) { return true, nil },
			[]testing.InternalTest{{Name: "sim", F: func(t *testing.T) {
				for job := range jobs {
					job(t)
				}
			}}}, nil, nil)
	})
	done := make(chan struct{})
	jobs <- func(t *testing.T) {
		defer close(done)
		f(t)
	}
	<-done
}

var (
	startTest sync.Once
	jobs      = make(chan func(t *testing.T)) // never closed: closing it would end the test and with it the program
)
