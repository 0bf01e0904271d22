package server

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"

	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// slowDisk has the output of one session, and takes its time before each read.
type slowDisk struct {
	Backend
	info sessions.SessionInfo
}

func (d slowDisk) Output(context.Context, string, int64) (io.ReadCloser, sessions.SessionInfo, error) {
	return io.NopCloser(&slowReader{bytes.NewReader(make([]byte, 3*pieceBytes))}), d.info, nil
}

type slowReader struct{ io.Reader }

func (r *slowReader) Read(b []byte) (int, error) {
	wait.Elapse(2 * rawQuiet)
	return r.Reader.Read(b)
}

// The output of a session that ended is complete, however long the disk, or decompressing it, takes.
func TestRawOutputOfSlowDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Server{engine: slowDisk{}}
		if body, more, err := s.readOutput(t.Context(), "coder-1", 0, rawMax); len(body) != 3*pieceBytes || more || err != nil {
			t.Errorf("%d bytes of %d, more %t, %v", len(body), 3*pieceBytes, more, err)
		}
		s.engine = slowDisk{info: sessions.SessionInfo{Open: true}}
		if body, more, err := s.readOutput(t.Context(), "coder-1", 0, rawMax); len(body) != 0 || !more || err != nil {
			t.Errorf("of a running session: %d bytes, more %t, %v", len(body), more, err)
		}
	})
}
