package sim

import (
	"flag"
	"runtime"
	"sync"
	"testing"
)

// Play runs f in a goroutine of a running test, so that f can make bubbles, in a program
// that is none: time in a bubble costs nothing, and only a test may have one. It is what
// the command in cmd/sim uses. The test never ends: the program does, when its main function
// returns. One processor plays, since then the order in which goroutines move is the same
// in every replay.
func Play(f func(t *testing.T)) {
	stage.Do(func() {
		runtime.GOMAXPROCS(1)
		testing.Init()
		if !flag.Parsed() {
			_ = flag.CommandLine.Parse(nil) // or the test's own flags would be looked for among ours
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
	stage sync.Once
	jobs  = make(chan func(t *testing.T)) // never closed: the end of the test would be the end of the program
)
