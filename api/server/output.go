package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

const (
	outputEvery    = 50 * time.Millisecond // 20 messages a second look live to a reader
	outputBytesMax = 64 << 10              // of one message
	pieceBytes     = outputBytesMax / 2    // of one read

	rawMax   = 16 << 20 // an answer is held in memory; the client requests the rest with the next one
	rawQuiet = 100 * time.Millisecond

	sessionLook = 100 * time.Millisecond // how often a session without output, or without an end, is checked
	probeWait   = 25 * time.Millisecond  // for a byte that exists; it comes from memory or disk
	probeFirst  = 64 << 10               // bytes: the first step of the search for the end of the output
	probeExact  = 1 << 10                // bytes: the precision of the search for the end
)

type rawIn struct {
	ID    string `path:"id" maxLength:"134" pattern:"^([a-z0-9][a-z0-9._-]{0,63}|[A-Za-z0-9_][A-Za-z0-9._-]{0,63}@[A-Za-z0-9_][A-Za-z0-9._-]{0,47})-[0-9]{1,20}$" example:"coder-17" doc:"The session: AGENT-NUMBER, or of a step STEP@RUN-NUMBER"`
	From  int64  `query:"from" minimum:"0" doc:"The offset of the first byte"`
	Limit int    `query:"limit" default:"1048576" minimum:"1" maximum:"16777216" doc:"The maximum number of bytes"`
}

// handleRaw serves a session's output up to now, as bytes.
func handleRaw(s *Server, w http.ResponseWriter, r *http.Request, in *rawIn) {
	body, more, err := s.readOutput(r.Context(), in.ID, in.From, in.Limit)
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="`+in.ID+`.output"`)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Fairlead-Offset", strconv.FormatInt(in.From, 10))
	h.Set("X-Fairlead-End", strconv.FormatInt(in.From+int64(len(body)), 10))
	h.Set("X-Fairlead-Open", strconv.FormatBool(more))
	// if it cannot be set, the server's own limit applies
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.waits.answer))
	w.Write(body)
}

// readOutput reads the existing output, up to a limit, and reports whether more may come.
func (s *Server) readOutput(ctx context.Context, id string, from int64, limit int) ([]byte, bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, info, err := s.engine.Sessions.Output(ctx, id, from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, info.Open, nil // its process has not started
	}
	if err != nil {
		return nil, false, err
	}
	pieces := pump(ctx, out)
	defer pieces.stop(cancel)
	quiet := time.NewTimer(rawQuiet)
	defer quiet.Stop()
	if !info.Open {
		quiet.Stop() // its end comes, however slow the disk is
	}
	var body []byte
	for len(body) < limit {
		select {
		case p := <-pieces.c:
			body = append(body, p.bytes[:min(len(p.bytes), limit-len(body))]...)
			if errors.Is(p.err, io.EOF) {
				return body, info.Open || len(body) == limit, nil
			}
			if p.err != nil {
				return nil, false, p.err
			}
			if info.Open {
				quiet.Reset(rawQuiet)
			}
		case <-quiet.C:
			return body, true, nil
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
	return body, true, nil
}

// pieces are the pieces of output that a reader returns.
type pieces struct {
	c      chan piece
	out    io.Closer
	reader chan struct{} // closed when the reader has ended
}

type piece struct {
	bytes []byte // valid only until the piece after the next is read
	err   error
}

// pump reads in a goroutine of its own, because a read waits for the agent.
func pump(ctx context.Context, out io.ReadCloser) *pieces {
	p := &pieces{c: make(chan piece), out: out, reader: make(chan struct{})}
	go func() {
		defer close(p.reader)
		bufs := [2][]byte{make([]byte, pieceBytes), make([]byte, pieceBytes)}
		for i := 0; ; i = 1 - i {
			n, err := out.Read(bufs[i])
			select {
			case p.c <- piece{bytes: bufs[i][:n], err: err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return p
}

// stop ends the reader, and returns when it has ended.
func (p *pieces) stop(cancel context.CancelFunc) {
	cancel()
	p.out.Close()
	<-p.reader
}

type outputIn struct {
	ID          string `path:"id" maxLength:"134" pattern:"^([a-z0-9][a-z0-9._-]{0,63}|[A-Za-z0-9_][A-Za-z0-9._-]{0,63}@[A-Za-z0-9_][A-Za-z0-9._-]{0,47})-[0-9]{1,20}$" example:"coder-17" doc:"The session: AGENT-NUMBER, or of a step STEP@RUN-NUMBER"`
	LastEventID int64  `header:"Last-Event-ID" default:"-1" minimum:"-1" doc:"The offset that the client has reached; it takes precedence over from and tail"`
	From        int64  `query:"from" default:"-1" minimum:"-1" doc:"The offset to begin at; without it, the beginning"`
	Tail        int64  `query:"tail" minimum:"0" maximum:"1073741824" doc:"Begin about this many bytes before the end"`
	Poll        bool   `query:"poll" doc:"As for /events: end the answer after the first output, or after 10 s without any"`
}

// handleOutputStream streams a session's output as text while the session runs.
func handleOutputStream(s *Server, w http.ResponseWriter, r *http.Request, in *outputIn) {
	if err := s.enter(); err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	defer s.leave()
	ctx := r.Context()
	if _, err := s.engine.Sessions.Session(ctx, in.ID); err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	t := &listener{s: s, id: in.ID, poll: in.Poll}
	switch {
	case in.LastEventID >= 0:
		t.at = in.LastEventID
	case in.From >= 0:
		t.at = in.From
	case in.Tail > 0:
		t.at = s.nearEnd(ctx, in.ID, in.Tail)
		t.torn = t.at > 0
	}
	out, err := s.openSSE(w, r, reconnectMin*time.Millisecond)
	if err != nil || r.Method == http.MethodHead {
		return
	}
	t.out = out
	if t.poll {
		within, cancel := context.WithTimeout(ctx, s.waits.poll)
		defer cancel()
		ctx = within
	}
	if err := t.run(ctx); err != nil && stillThere(ctx, err) != nil {
		out.bye(err)
	}
	out.over(t.poll)
}

// nearEnd returns the offset about tail bytes before the end of the existing output. The end is not
// known, so a binary search tests which offsets have a byte.
func (s *Server) nearEnd(ctx context.Context, id string, tail int64) int64 {
	exact := min(max(tail/4, probeExact), probeFirst)
	low, step := int64(0), int64(probeFirst)
	for s.hasByte(ctx, id, low+step) {
		low += step
		step *= 2
	}
	for high := low + step; high-low > exact; {
		if middle := low + (high-low)/2; s.hasByte(ctx, id, middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return max(0, low-tail)
}

// hasByte reports whether there is output at an offset.
func (s *Server) hasByte(ctx context.Context, id string, offset int64) bool {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	out, _, err := s.engine.Sessions.Output(ctx, id, offset)
	if err != nil {
		return false
	}
	defer out.Close()
	var b [1]byte
	n, _ := out.Read(b[:])
	return n == 1
}

// listener is a client that follows a session's output.
type listener struct {
	s    *Server
	out  *sse
	id   string
	at   int64 // the offset up to which output was sent
	poll bool  // the first output ends the answer
	torn bool  // the first bytes may be the end of a character that begins before them

	held []byte    // read, but not sent yet
	next time.Time // the earliest time of the next message
}

// run sends output until the session is over, the client is gone, or it must return why it stops.
// The state of the session is read before the output: if the session was over by then, the output is
// complete.
func (t *listener) run(ctx context.Context) error {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		info, err := t.relay(ctx, ping)
		if err != nil {
			return err
		}
		if !info.Open {
			if err := t.tell(true); err != nil {
				return err
			}
			return t.out.send(message("end", "", api.Ended{Outcome: info.Outcome, Why: info.Why}))
		}
		again := time.NewTimer(sessionLook)
		if err := t.wait(ctx, ping, again.C); err != nil {
			again.Stop()
			return err
		}
	}
}

// relay sends a session's output until there is no more at present.
func (t *listener) relay(ctx context.Context, ping *time.Ticker) (sessions.SessionInfo, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, info, err := t.s.engine.Sessions.Output(ctx, t.id, t.at+int64(len(t.held)))
	if errors.Is(err, fs.ErrNotExist) {
		return info, nil // its process has not started
	}
	if err != nil {
		return info, err
	}
	pieces := pump(ctx, out)
	defer pieces.stop(cancel)
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		more := pieces.c
		if len(t.held)+pieceBytes > outputBytesMax {
			more = nil // send this piece first
		}
		select {
		case p := <-more:
			t.held = append(t.held, p.bytes...)
			if errors.Is(p.err, io.EOF) {
				return info, nil
			}
			if p.err != nil {
				return info, p.err
			}
			if info.Open {
				due.Reset(time.Until(t.next))
			} else {
				due.Reset(0) // output of a session that has ended needs no pauses
			}
		case <-due.C:
			before := t.at
			if err := t.tell(false); err != nil || t.poll && t.at > before {
				return info, cmp.Or(err, errCut)
			}
		case <-ping.C:
			if err := t.out.send(pingMessage); err != nil {
				return info, err
			}
		case <-t.s.ctx.Done():
			return info, loop.ErrClosed
		case <-ctx.Done():
			return info, errCut
		}
	}
}

// wait waits, and keeps the connection alive with comments.
func (t *listener) wait(ctx context.Context, ping *time.Ticker, until <-chan time.Time) error {
	for {
		select {
		case <-until:
			return t.tell(false)
		case <-ping.C:
			if err := t.out.send(pingMessage); err != nil {
				return err
			}
		case <-t.s.ctx.Done():
			return loop.ErrClosed
		case <-ctx.Done():
			return errCut
		}
	}
}

// tell sends the held bytes. An incomplete character is kept for the next call, unless all is set.
func (t *listener) tell(all bool) error {
	if t.torn && len(t.held) > 0 {
		skip := clip.Torn(t.held)
		t.held, t.at, t.torn = t.held[skip:], t.at+int64(skip), false
	}
	n := len(t.held)
	if !all {
		n = clip.Whole(t.held)
	}
	if n == 0 {
		return nil
	}
	end := t.at + int64(n)
	text := strings.ToValidUTF8(string(t.held[:n]), "\uFFFD")
	err := t.out.send(message("output", strconv.FormatInt(end, 10), api.Output{Offset: t.at, End: end, Text: text}))
	t.held = append(t.held[:0], t.held[n:]...)
	t.at, t.next = end, time.Now().Add(outputEvery)
	return err
}

type factsIn struct {
	ID   string `path:"id" maxLength:"134" pattern:"^([a-z0-9][a-z0-9._-]{0,63}|[A-Za-z0-9_][A-Za-z0-9._-]{0,63}@[A-Za-z0-9_][A-Za-z0-9._-]{0,47})-[0-9]{1,20}$" example:"coder-17" doc:"The session: AGENT-NUMBER, or of a step STEP@RUN-NUMBER"`
	From int64  `query:"from" default:"-1" minimum:"-1" doc:"An offset at which a line begins: the first facts after it are returned, instead of the newest"`
	Tail int    `query:"tail" default:"200" minimum:"1" maximum:"2000" doc:"The maximum number of facts"`
}

// factsWait is how long the facts of a running session are collected.
const factsWait = 400 * time.Millisecond

func handleFacts(ctx context.Context, s *Server, in *factsIn) (*api.Facts, error) {
	heard, err := s.engine.Sessions.Facts(ctx, in.ID, in.From, in.Tail, factsWait)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := &api.Facts{Facts: make([]driver.Fact, 0, len(heard))}
	for _, f := range heard {
		f.Args, f.Raw = nil, nil // long, and in the output
		all.Facts = append(all.Facts, f)
	}
	return all, nil
}
