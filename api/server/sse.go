package server

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/loop"
)

const (
	// streamsMax bounds the streams that are open at once: each costs a connection and a
	// goroutine, and more of them than this is a loop somewhere that forgets to close.
	streamsMax = 2000

	pingEvery    = 15 * time.Second // proxies and browsers give up a line that is silent for longer than a minute or so
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
	path    string // what is streamed
	written int    // since the deadline was set
}

// openSSE begins a stream: from here on there are no more problems, only goodbyes.
func (s *Server) openSSE(w http.ResponseWriter, r *http.Request, retry time.Duration) (*sse, error) {
	out := &sse{s: s, w: w, rc: http.NewResponseController(w), path: r.URL.Path}
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

// cutOff makes every fault of the line the same one: there is nobody to be told anything. That
// somebody was cut off because he took nothing is told to whoever reads our log, once, since
// nothing is written after it.
func (o *sse) cutOff(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		o.s.log.Info("a stream was cut: nobody took anything of it for "+o.s.waits.piece.String()+"; a client resumes where it was", "path", o.path)
	}
	return errCut
}

func (o *sse) send(b []byte) error {
	if err := o.write(b); err != nil {
		return err
	}
	return o.flush()
}

// bye ends a stream in words. That it does not arrive is no loss: the line is cut then.
func (o *sse) bye(why error) {
	reason := "failed"
	switch {
	case errors.Is(why, errLagged) || errors.Is(why, loop.ErrLagged):
		reason = "lagged"
	case errors.Is(why, loop.ErrClosed):
		reason = "stopping"
	}
	_ = o.send(message("bye", "", api.Bye{Reason: reason, Detail: why.Error()}))
}

// enter counts a stream, or says that there are too many.
func (s *Server) enter() error {
	if s.ctx.Err() != nil {
		return loop.ErrClosed
	}
	if s.streams.Add(1) > streamsMax {
		s.streams.Add(-1)
		return api.NewProblem(http.StatusServiceUnavailable, "%d streams are open already, and more are not served; close some, or ask /journal instead", streamsMax)
	}
	return nil
}

func (s *Server) leave() { s.streams.Add(-1) }
