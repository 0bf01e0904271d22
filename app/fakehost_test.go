package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"

	"github.com/fairlead-dev/fairlead/process/driver"
)

// fakeHost runs sessions in the test's own process. They outlive the supervisor, as sessions with
// real shims do. It keeps all sessions that were ever started.
type fakeHost struct {
	mu       sync.Mutex
	sessions map[string]*fakeSession
	order    []string // session ids in order of their starts
	fence    uint64
	faults   []string // forbidden requests of a supervisor

	play   func(s *fakeSession) // runs a session in its own goroutine; nil: the session runs until it is ended
	starts hook                 // called before a start; its error is the result
	adopts hook
	ends   hook // called before a request to end
	lives  sync.WaitGroup
}

func newFakeHost() *fakeHost { return &fakeHost{sessions: map[string]*fakeSession{}} }

// fakeSession is one process.
type fakeSession struct {
	id       string
	kind     driver.Kind
	resume   string // the conversation to resume
	over     chan struct{}
	asked    chan struct{} // closed when it was asked to end, or its input was closed
	host     *fakeHost
	start    time.Time
	mu       sync.Mutex
	out      []byte
	grew     chan struct{}
	ending   session.Exit
	acked    bool
	endAsked bool

	in    []byte        // unread input
	input int64         // bytes of input, including those read
	label string        // of the last labeled input
	named []string      // labels of all labeled inputs
	typed chan struct{} // closed and replaced with every write
}

// say writes a line. It returns false if the session has ended.
func (s *fakeSession) say(format string, args ...any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() {
		return false
	}
	s.out = append(s.out, fmt.Sprintf(format, args...)+"\n"...)
	close(s.grew)
	s.grew = make(chan struct{})
	return true
}

// exit ends the session once.
func (s *fakeSession) exit(code int) {
	s.finish(session.Exit{Code: code, At: time.Now()})
}

func (s *fakeSession) finish(how session.Exit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() {
		return
	}
	how.SpoolBytes = int64(len(s.out))
	s.ending = how
	close(s.over)
}

func (s *fakeSession) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// tell asks the session to end.
func (s *fakeSession) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.endAsked {
		s.endAsked = true
		close(s.asked)
	}
}

// lasts runs for a while, or until it is asked to end.
func (s *fakeSession) lasts(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.asked:
	}
}

func (h *fakeHost) fault(format string, args ...any) {
	h.faults = append(h.faults, fmt.Sprintf(format, args...))
}

// hostHandle is the host for one supervisor, with its crashPoint.
type hostHandle struct {
	*fakeHost
	crashPoint *crashPoint
}

func (h hostHandle) Start(ctx context.Context, id string, epoch uint64, launch spawn.Launch, _ time.Duration) (sessionhost.Process, error) {
	if err := h.starts.ask(id); err != nil {
		return nil, err
	}
	var s *fakeSession
	var refused error
	err := h.crashPoint.act("start "+id, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		switch {
		case epoch < h.fence:
			refused = &sessionhost.Fenced{Why: fmt.Sprintf("epoch %d was overtaken", epoch)}
			return
		case h.sessions[id] != nil:
			refused = &spawn.AlreadyStarted{Session: id}
			return
		}
		for other, s := range h.sessions {
			if agentIn(other) == agentIn(id) && !s.isOver() {
				h.fault("%s was started while %s runs", id, other)
			}
		}
		s = &fakeSession{
			id: id, kind: driver.Kind(launch.Argv[0]), over: make(chan struct{}), asked: make(chan struct{}),
			host: h.fakeHost, grew: make(chan struct{}), start: time.Now(), typed: make(chan struct{}),
		}
		if len(launch.Argv) > 1 {
			s.resume = launch.Argv[1]
		}
		s.take(launch.Input, "")
		h.sessions[id] = s
		h.order = append(h.order, id)
		h.lives.Go(func() {
			if h.play == nil {
				<-s.asked
				s.finish(session.Exit{Code: -1, Signal: "SIGTERM"})
				return
			}
			h.play(s)
			s.exit(0)
		})
	})
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused
	}
	return &fakeProc{fakeSession: s, crashPoint: h.crashPoint, epoch: epoch, ctx: ctx}, nil
}

func (h hostHandle) Adopt(_ context.Context, id string, epoch uint64) (sessionhost.Process, sessionhost.Found, error) {
	if err := h.adopts.ask(id); err != nil {
		return nil, "", err
	}
	if h.crashPoint.isDead() {
		return nil, "", errDead
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if epoch < h.fence {
		return nil, "", &sessionhost.Fenced{Why: fmt.Sprintf("epoch %d was overtaken", epoch)}
	}
	h.fence = epoch
	s := h.sessions[id]
	if s == nil {
		return nil, sessionhost.NeverStarted, nil
	}
	p := &fakeProc{fakeSession: s, crashPoint: h.crashPoint, epoch: epoch}
	switch {
	case !s.isOver():
		return p, sessionhost.Running, nil
	case s.ending.Lost:
		return p, sessionhost.Lost, nil
	default:
		return p, sessionhost.Exited, nil
	}
}

func (h hostHandle) Output(_ context.Context, id string, offset int64) (io.ReadCloser, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	if s == nil {
		return nil, fmt.Errorf("no session %s: %w", id, fs.ErrNotExist)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return io.NopCloser(bytes.NewReader(s.out[min(offset, int64(len(s.out))):])), nil
}

func (h hostHandle) Sweep(context.Context) ([]string, error) { return nil, nil }

func (h hostHandle) Orphans(context.Context, func(string) bool) ([]sessionhost.Orphan, error) {
	return nil, nil
}

func (h hostHandle) PutAside(string) (string, error) { return "", nil }

// hook is a function that a test can set, also while it is called.
type hook struct {
	mu sync.Mutex
	f  func(about string) error
}

func (h *hook) set(f func(about string) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.f = f
}

func (h *hook) ask(about string) error {
	h.mu.Lock()
	f := h.f
	h.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(about)
}

// agentIn returns the agent of a session: coder for coder-17.
func agentIn(session string) string { return session[:strings.LastIndexByte(session, '-')] }

// startsOf counts the starts of an agent's sessions.
func (h *fakeHost) startsOf(agent string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, id := range h.order {
		if agentIn(id) == agent {
			n++
		}
	}
	return n
}

func (h *fakeHost) session(id string) *fakeSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[id]
}

// running lists the sessions that run.
func (h *fakeHost) running() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []string
	for id, s := range h.sessions {
		if !s.isOver() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// killAll ends all running sessions and waits for their goroutines, because a bubble requires that.
func (h *fakeHost) killAll() {
	h.mu.Lock()
	for _, s := range h.sessions {
		s.tell()
		s.finish(session.Exit{Code: -1, Signal: "SIGKILL"})
	}
	h.mu.Unlock()
	h.lives.Wait()
}

// fakeProc is one supervisor's handle of a session.
type fakeProc struct {
	*fakeSession
	crashPoint *crashPoint
	epoch      uint64
	ctx        context.Context
}

func (p *fakeProc) PID() int { return 1000 + len(p.id) }

func (p *fakeProc) Done() <-chan struct{} { return p.over }

func (p *fakeProc) Close() error { return nil }

func (p *fakeProc) Ended(context.Context) (session.Exit, error) {
	if err := p.allowed(); err != nil {
		return session.Exit{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ending, nil
}

func (p *fakeProc) allowed() error {
	if p.crashPoint.isDead() {
		return errDead
	}
	p.host.mu.Lock()
	defer p.host.mu.Unlock()
	if p.epoch < p.host.fence {
		return &sessionhost.Fenced{Why: fmt.Sprintf("epoch %d was overtaken", p.epoch)}
	}
	return nil
}

func (p *fakeProc) End(context.Context, time.Duration) error {
	if err := p.host.ends.ask(p.id); err != nil {
		return err
	}
	if err := p.allowed(); err != nil {
		return err
	}
	return p.crashPoint.act("end "+p.id, p.tell)
}

func (p *fakeProc) Ack(context.Context) error {
	if err := p.allowed(); err != nil {
		return err
	}
	return p.crashPoint.act("ack "+p.id, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.acked = true
	})
}

func (p *fakeProc) Evidence(context.Context) (sessionhost.Proof, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return sessionhost.Proof{PID: p.PID(), ShimPID: 1, StartedAt: p.start, Bytes: int64(len(p.out))}, p.allowed()
}

func (p *fakeProc) Send(ctx context.Context, input []byte) error { return p.SendAs(ctx, "", input) }

// SendAs writes labeled input once.
func (p *fakeProc) SendAs(_ context.Context, label string, input []byte) error {
	if err := p.allowed(); err != nil {
		return err
	}
	if p.isOver() {
		return driver.ErrNoInput
	}
	return p.crashPoint.act("type "+p.id+" "+label, func() { p.take(input, label) })
}

func (p *fakeProc) Input() (int64, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.input, p.label
}

// take receives input.
func (s *fakeSession) take(input []byte, label string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in = append(s.in, input...)
	s.input += int64(len(input))
	if label != "" {
		s.label = label
		s.named = append(s.named, label)
	}
	close(s.typed)
	s.typed = make(chan struct{})
}

// next returns the session's next prompt or cancellation. It returns false if the session must end
// or the time is over.
func (s *fakeSession) next(within time.Duration) (text string, cancel, ok bool) {
	late := wait.After(within)
	for {
		s.mu.Lock()
		line, rest, whole := bytes.Cut(s.in, []byte("\n"))
		typed := s.typed
		if whole {
			s.in = rest
		}
		s.mu.Unlock()
		if whole {
			var order fakeOrder
			if err := json.Unmarshal(line, &order); err != nil {
				panic(fmt.Sprintf("%s received %q: %v", s.id, line, err))
			}
			return order.Prompt, order.Cancel, true
		}
		select {
		case <-typed:
		case <-s.asked:
			return "", false, false
		case <-late:
			return "", false, false
		}
	}
}

// fakeOrder is one line of input.
type fakeOrder struct {
	Prompt string `json:"prompt,omitempty"`
	Cancel bool   `json:"cancel,omitempty"`
}

func (o fakeOrder) line() []byte {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return append(text, '\n')
}

func (p *fakeProc) CloseInput(context.Context) error {
	p.tell()
	return nil
}

func (p *fakeProc) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	return &fakeOutput{s: p.fakeSession, ctx: ctx, cancel: cancel, at: int(offset)}, nil
}

// fakeOutput follows a session's output.
type fakeOutput struct {
	s      *fakeSession
	ctx    context.Context
	cancel context.CancelFunc
	at     int
}

func (o *fakeOutput) Read(b []byte) (int, error) {
	for {
		o.s.mu.Lock()
		over, grew, rest := o.s.isOver(), o.s.grew, o.s.out[min(o.at, len(o.s.out)):]
		o.s.mu.Unlock()
		if len(rest) > 0 {
			n := copy(b, rest)
			o.at += n
			return n, nil
		}
		if over {
			return 0, io.EOF
		}
		select {
		case <-grew:
		case <-o.s.over:
		case <-o.ctx.Done():
			return 0, o.ctx.Err()
		}
	}
}

func (o *fakeOutput) Close() error {
	o.cancel()
	return nil
}

var fakeLaunch = spawn.Launch{Argv: []string{string(driver.Work)}}
