package server

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

const (
	// streamsMax bounds the open streams: each costs a connection and a goroutine, and a greater number
	// means that a client opens streams in a loop without closing them.
	streamsMax = 2000

	pingEvery    = 15 * time.Second // proxies and browsers close a connection that is idle for more than about a minute
	writeBytes   = 64 << 10         // written before the deadline is extended
	reconnectMin = 500              // ms, sent to browsers
	reconnectVar = 1000             // ms, so that clients do not all reconnect at the same moment
)

// message encodes one event of a stream. data is JSON from encode, so it has no line ends.
func message(event, id string, data any) []byte {
	var out bytes.Buffer
	if id != "" {
		out.WriteString("id: " + id + "\n")
	}
	out.WriteString("event: " + event + "\ndata: ")
	out.Write(api.Encode(data))
	out.WriteString("\n\n")
	return out.Bytes()
}

var pingMessage = []byte(": ping\n\n")

// sse is a stream of events to one client.
type sse struct {
	s       *Server
	w       http.ResponseWriter
	rc      *http.ResponseController
	path    string // the path that is streamed
	written int    // bytes since the deadline was set
}

// openSSE begins a stream: after this, errors are reported as goodbyes, not as problems.
func (s *Server) openSSE(w http.ResponseWriter, r *http.Request, retry time.Duration) (*sse, error) {
	out := &sse{s: s, w: w, rc: http.NewResponseController(w), path: r.URL.Path}
	// The server's limits apply to requests that end.
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

func (o *sse) write(b []byte) error {
	if o.written == 0 || o.written >= writeBytes {
		o.written = 0
		if err := o.rc.SetWriteDeadline(time.Now().Add(o.s.waits.piece)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
	}
	o.written += len(b)
	_, err := o.w.Write(b)
	return o.cutOff(err)
}

func (o *sse) flush() error {
	o.written = 0
	return o.cutOff(o.rc.Flush())
}

// cutOff turns every error of the connection into errCut. A client that was cut off because it read
// nothing is logged once, since nothing is written afterwards.
func (o *sse) cutOff(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		o.s.log.Info("a stream was closed because the client read nothing for "+o.s.waits.piece.String()+"; the client can resume it",
			"path", o.path)
	}
	return errCut
}

func (o *sse) send(b []byte) error {
	if err := o.write(b); err != nil {
		return err
	}
	return o.flush()
}

// bye ends a stream with a reason. If it does not arrive, the client sees a closed connection.
func (o *sse) bye(why error) {
	reason := "failed"
	if errors.Is(why, loop.ErrClosed) {
		reason = "stopping"
	}
	_ = o.send(message("bye", "", api.Bye{Reason: reason, Detail: why.Error()}))
}

// over ends an answer to a poll. The end has to be written too, and the last deadline may have passed.
func (o *sse) over(poll bool) {
	if poll {
		_ = o.send(pingMessage) // the client may be gone
	}
}

// enter counts a stream, or refuses it if there are too many.
func (s *Server) enter() error {
	if s.ctx.Err() != nil {
		return loop.ErrClosed
	}
	if s.streams.Add(1) > streamsMax {
		s.streams.Add(-1)
		return api.NewProblem(http.StatusServiceUnavailable,
			"%d streams are open, which is the limit; close some, or read /journal instead", streamsMax)
	}
	return nil
}

func (s *Server) leave() { s.streams.Add(-1) }
