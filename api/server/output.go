package server

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/loop"
)

const (
	outputEvery    = 50 * time.Millisecond // 20 messages a second are as good as live to who reads
	outputBytesMax = 64 << 10              // of one message
	pieceBytes     = outputBytesMax / 2    // of one read

	rawDefault = 1 << 20
	rawMax     = 16 << 20 // one answer is held in memory; ask again for the rest
	rawQuiet   = 100 * time.Millisecond

	sessionLook = 100 * time.Millisecond // between looks at a session that has no output yet, or no end
	probeWait   = 25 * time.Millisecond  // for a byte that is there; it comes from memory or a disk
	probeFirst  = 64 << 10               // bytes: the first step of the search for the end
	probeExact  = 1 << 10                // bytes: no end is looked for more exactly than this
)

type rawIn struct {
	ID    string `path:"id" maxLength:"134" pattern:"^([a-z0-9][a-z0-9._-]{0,63}|[A-Za-z0-9_][A-Za-z0-9._-]{0,63}@[A-Za-z0-9_][A-Za-z0-9._-]{0,47})-[0-9]{1,20}$" example:"coder-17" doc:"The session: AGENT-NUMBER, or of a step STEP@RUN-NUMBER"`
	From  int64  `query:"from" minimum:"0" doc:"The offset of the first byte"`
	Limit int    `query:"limit" default:"1048576" minimum:"1" maximum:"16777216" doc:"At most so many bytes"`
}

// raw gives what a session has said so far, as it is.
func (s *Server) raw(w http.ResponseWriter, r *http.Request, in *rawIn) {
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
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.waits.answer)) // where it cannot be set, the server's own holds
	w.Write(body)
}

// readOutput takes what is there, up to a limit, and says whether more may come.
func (s *Server) readOutput(ctx context.Context, id string, from int64, limit int) ([]byte, bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, info, err := s.engine.Output(ctx, id, from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, info.Open, nil // its process did not begin, or not yet
	}
	if err != nil {
		return nil, false, err
	}
	pieces := pump(ctx, out)
	defer pieces.stop(cancel)
	quiet := time.NewTimer(rawQuiet)
	defer quiet.Stop()
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
			quiet.Reset(rawQuiet)
		case <-quiet.C:
			return body, true, nil
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
	return body, true, nil
}

// pieces are what a reader gives, as it gives them.
type pieces struct {
	c      chan piece
	out    io.Closer
	reader chan struct{} // closed when it has gone
}

type piece struct {
	bytes []byte // only good until the next piece but one
	err   error
}

// pump reads beside us, since a read waits for the agent.
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

// stop ends the reader, and returns when it has gone.
func (p *pieces) stop(cancel context.CancelFunc) {
	cancel()
	p.out.Close()
	<-p.reader
}

type outputIn struct {
	ID          string `path:"id" maxLength:"134" pattern:"^([a-z0-9][a-z0-9._-]{0,63}|[A-Za-z0-9_][A-Za-z0-9._-]{0,63}@[A-Za-z0-9_][A-Za-z0-9._-]{0,47})-[0-9]{1,20}$" example:"coder-17" doc:"The session: AGENT-NUMBER, or of a step STEP@RUN-NUMBER"`
	LastEventID int64  `header:"Last-Event-ID" default:"-1" minimum:"-1" doc:"The offset that the client has reached; it wins over from and tail"`
	From        int64  `query:"from" default:"-1" minimum:"-1" doc:"The offset to begin at; without it at the beginning"`
	Tail        int64  `query:"tail" minimum:"0" maximum:"1073741824" doc:"Begin about so many bytes before the end"`
}

// outputStream is what a session says, as text, as it says it.
func (s *Server) outputStream(w http.ResponseWriter, r *http.Request, in *outputIn) {
	if err := s.enter(); err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	defer s.leave()
	ctx := r.Context()
	if _, err := s.engine.Session(ctx, in.ID); err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	t := &listener{s: s, id: in.ID}
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
	if err := t.run(ctx); err != nil && stillThere(ctx, err) != nil {
		out.bye(err)
	}
}

// nearEnd is the offset about tail bytes before the end of what there is. Nobody tells us
// the end, so it is looked for: a byte is there, or it is not.
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

// hasByte says whether there is output at an offset.
func (s *Server) hasByte(ctx context.Context, id string, offset int64) bool {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	out, _, err := s.engine.Output(ctx, id, offset)
	if err != nil {
		return false
	}
	defer out.Close()
	var b [1]byte
	n, _ := out.Read(b[:])
	return n == 1
}

// listener is one who hears a session.
type listener struct {
	s    *Server
	out  *sse
	id   string
	at   int64 // everything before was told
	torn bool  // the first bytes may belong to a character that begins before

	held []byte    // read and not told yet
	next time.Time // no message before
}

// run tells until the session is over, the client has gone, or it has to say why it stops.
// What the session is was asked before its output was read to the end: where it was over
// then, that was all.
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

// relay passes on what a session says until there is no more at present.
func (t *listener) relay(ctx context.Context, ping *time.Ticker) (sessions.SessionInfo, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, info, err := t.s.engine.Output(ctx, t.id, t.at+int64(len(t.held)))
	if errors.Is(err, fs.ErrNotExist) {
		return info, nil // its process did not begin, or not yet
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
			more = nil // first things first
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
			due.Reset(time.Until(t.next))
		case <-due.C:
			if err := t.tell(false); err != nil {
				return info, err
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

// wait lets time pass without letting the line go silent.
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

// tell sends what is held. A character that is not whole yet is kept, but not at the very end.
func (t *listener) tell(all bool) error {
	if t.torn && len(t.held) > 0 {
		skip := tornStart(t.held)
		t.held, t.at, t.torn = t.held[skip:], t.at+int64(skip), false
	}
	n := len(t.held)
	if !all {
		n = cutText(t.held)
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
	Tail int    `query:"tail" default:"200" minimum:"1" maximum:"2000" doc:"The last so many"`
}

// factsWait is how long the output of a session that still runs is listened to.
const factsWait = 400 * time.Millisecond

func (s *Server) facts(ctx context.Context, in *factsIn) (*api.Facts, error) {
	heard, err := s.engine.Facts(ctx, in.ID, in.Tail, factsWait)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := &api.Facts{Facts: make([]api.Fact, 0, len(heard))}
	for _, f := range heard {
		all.Facts = append(all.Facts, api.FactOf(f))
	}
	return all, nil
}
