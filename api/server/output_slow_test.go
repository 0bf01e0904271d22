package server

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// slowDisk takes its time before each read.
type slowDisk struct{ io.ReadCloser }

func (d slowDisk) Read(b []byte) (int, error) {
	wait.Elapse(2 * rawQuiet)
	return d.ReadCloser.Read(b)
}

// The output of a session that ended is complete, however long the disk, or decompressing it, takes.
func TestRawOutputOfSlowDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sup := superviseStill(t, memory.New(), pair)
		p := sup.begin(t, "coder", 1)
		p.say(strings.Repeat("x", 3*pieceBytes))
		synctest.Wait() // the controller follows it
		sup.host.direct(func() { sup.host.read = func(out io.ReadCloser) io.ReadCloser { return slowDisk{out} } })
		s := &Server{engine: sup.App}
		if body, more, err := s.readOutput(t.Context(), "coder-1", 0, rawMax); len(body) != 0 || !more || err != nil {
			t.Errorf("of a running session: %d bytes, more %t, %v", len(body), more, err)
		}
		sup.over(t, p)
		if body, more, err := s.readOutput(t.Context(), "coder-1", 0, rawMax); len(body) != 3*pieceBytes || more || err != nil {
			t.Errorf("%d bytes of %d, more %t, %v", len(body), 3*pieceBytes, more, err)
		}
	})
}
