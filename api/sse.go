package api

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fairlead-dev/fairlead/engine"
)

const (
	// streamsMax bounds the streams that are open at once: each costs a connection and a
	// goroutine, and more of them than this is a loop somewhere that forgets to close.
	streamsMax = 2000

	pingEvery    = 15 * time.Second // proxies and browsers give up a line that is silent for longer than a minute or so
	writeWait    = 10 * time.Second // who takes nothing for so long has gone to sleep; it resumes
	writeBytes   = 64 << 10         // that are written before the time begins anew
	reconnectMin = 500              // ms, told to browsers
	reconnectVar = 1000             // ms, so that not all come back at the same moment
)

// message is one event of a stream. JSON that encode wrote has no line ends in it.
func message(event, id string, data any) []byte {
	var out bytes.Buffer
	if id != "" {
		out.WriteString("id: " + id + "\n")
	}
	out.WriteString("event: " + event + "\ndata: ")
	out.Write(encode(data))
	out.WriteString("\n\n")
	return out.Bytes()
}

var pingMessage = []byte(": ping\n\n")

// sse is a stream of events to one client.
type sse struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	wait    time.Duration // for a piece to be taken
	written int           // since the deadline was set
}

// openSSE begins a stream: from here on there are no more problems, only goodbyes.
func (s *Server) openSSE(w http.ResponseWriter, retry time.Duration) (*sse, error) {
	out := &sse{w: w, rc: http.NewResponseController(w), wait: s.patience}
	// The server's limits are for requests that end.
	if err := out.rc.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no")
	if err := out.write(fmt.Appendf(nil, "retry: %d\n\n", retry.Milliseconds())); err != nil {
		return nil, err
	}
	return out, out.flush()
}

func (s *sse) write(b []byte) error {
	if s.written == 0 || s.written >= writeBytes {
		s.written = 0
		if err := s.rc.SetWriteDeadline(time.Now().Add(s.wait)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
	}
	s.written += len(b)
	_, err := s.w.Write(b)
	return err
}

func (s *sse) flush() error {
	s.written = 0
	return s.rc.Flush()
}

func (s *sse) send(b []byte) error {
	if err := s.write(b); err != nil {
		return err
	}
	return s.flush()
}

// bye ends a stream in words. That it does not arrive is no loss: the line is cut then.
func (s *sse) bye(why error) {
	reason := "failed"
	switch {
	case errors.Is(why, errLagged) || errors.Is(why, engine.ErrLagged):
		reason = "lagged"
	case errors.Is(why, engine.ErrClosed):
		reason = "stopping"
	}
	_ = s.send(message("bye", "", Bye{Reason: reason, Detail: why.Error()}))
}

// enter counts a stream, or says that there are too many.
func (s *Server) enter() error {
	if s.ctx.Err() != nil {
		return engine.ErrClosed
	}
	if s.streams.Add(1) > streamsMax {
		s.streams.Add(-1)
		return problem(http.StatusServiceUnavailable, "%d streams are open already, and more are not served; close some, or ask /journal instead", streamsMax)
	}
	return nil
}

func (s *Server) leave() { s.streams.Add(-1) }
