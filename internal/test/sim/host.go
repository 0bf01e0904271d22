package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/script"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// hostSession is one agent process with its shim. It outlives engines. The world's lock guards it.
type hostSession struct {
	id             string
	fence          uint64
	begun          time.Time
	kill           context.CancelFunc
	sigterm        chan struct{} // closed by SIGTERM
	terminating    bool
	kind           driver.Kind
	inputClosed    bool              // CloseInput was called
	orders         chan speech.Order // closed by CloseInput
	input          *sessionInput
	asks           *sessionQuestions
	out            []byte        // its output so far, which the shim keeps
	moreOutput     chan struct{} // closed and replaced with each output
	over           chan struct{} // closed when its end is durable
	ending         session.Exit
	reportedTokens int64  // input tokens that it reported
	leftProcesses  bool   // it left processes running
	signal         string // the signal that ended it
	exitUnread     bool   // its exit could not be read, so the engine recorded it as lost
}

func (s *hostSession) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// spool writes the output of a session. The goroutine of the session calls it.
type spool struct {
	w *world
	s *hostSession
}

func (o spool) Write(b []byte) (int, error) {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	if o.s.isOver() {
		return 0, io.ErrClosedPipe
	}
	o.s.out = append(o.s.out, b...)
	for line := range bytes.Lines(b) {
		var fact struct {
			Type   string `json:"type"`
			Tokens int64  `json:"input_tokens"`
		}
		if json.Unmarshal(line, &fact) == nil && fact.Type == string(driver.UsageReported) {
			o.s.reportedTokens += fact.Tokens
		}
	}
	close(o.s.moreOutput)
	o.s.moreOutput = make(chan struct{})
	return len(b), nil
}

// run starts the program of a session in a goroutine; the caller holds the lock.
func (w *world) run(id string, launch spawn.Launch, epoch uint64) *hostSession {
	kind := driver.Kind(launch.Argv[0])
	ctx, kill := context.WithCancel(context.Background())
	s := &hostSession{
		id: id, fence: epoch, begun: time.Now(), kill: kill, sigterm: make(chan struct{}), orders: make(chan speech.Order),
		moreOutput: make(chan struct{}), over: make(chan struct{}), kind: kind, input: newSessionInput(), asks: newSessionQuestions(),
	}
	w.sessions[id] = s
	w.started = append(w.started, id)
	name := agentIn(id)
	program, leaves := programOf(w.seed, name, id, kind)
	if readsPrompts(kind) {
		w.putFirstInput(s, launch.Input)
	}
	w.goroutines.Go(func() {
		var end script.End
		left := false
		switch {
		case readsPrompts(kind):
			end = w.playAgent(ctx, s)
		case asks(w.seed) && name == askingAgent:
			end = fileWorld{w}.playAskingAgent(ctx, s)
		default:
			left = leaves
			end = script.Play(ctx, program, script.Part{Name: name, Session: id, Kind: kind, Attempt: 1, Prompt: "go on"},
				script.Stage{Out: spool{w, s}, Orders: s.orders, Stop: s.sigterm})
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		s.leftProcesses = left
		signal := end.Signal
		if s.signal != "" {
			signal = s.signal
		}
		w.finish(s, session.Exit{Code: end.Code, Signal: signal, At: time.Now()})
	})
	return s
}

// finish ends a session once. A shim that sees the end also ends the processes that the session
// left.
func (w *world) finish(s *hostSession, how session.Exit) {
	if s.isOver() {
		return
	}
	if !how.Lost {
		s.leftProcesses = false
	}
	how.SpoolBytes = int64(len(s.out))
	s.ending = how
	w.notef("%s has ended: %s%s", s.id, map[bool]string{true: "lost", false: fmt.Sprintf("status %d ", how.Code)}[how.Lost],
		how.Signal)
	close(s.over)
	s.kill()
}

// running lists the sessions that run; the caller holds the lock.
func (w *world) running() []string {
	var ids []string
	for id, s := range w.sessions {
		if !s.isOver() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// host is one engine's access to the machine.
type host struct {
	w *world
	l *engineRun
}

var _ sessionhost.Host = host{}

func (h host) Start(_ context.Context, id string, epoch uint64, launch spawn.Launch, _ time.Duration) (sessionhost.Process, error) {
	h.w.mu.Lock()
	checks{h.w}.checkStart(h.l, id)
	h.w.mu.Unlock()
	var s *hostSession
	f := h.w.wait(h.l, "start "+id)
	start := func() (err error) {
		h.w.mu.Lock()
		defer h.w.mu.Unlock()
		if epoch < h.w.fences[id] {
			return fenced(epoch)
		}
		if h.w.sessions[id] != nil {
			return &spawn.AlreadyStarted{Session: id}
		}
		checks{h.w}.checkStarted(id)
		s = h.w.run(id, launch, epoch)
		h.w.notef("%s runs", id)
		return nil
	}
	switch f {
	case proceeds, raceWrite:
		if err := start(); err != nil {
			return nil, err
		}
		return &process{w: h.w, l: h.l, hostSession: s, epoch: epoch, at: int64(len(launch.Input))}, nil
	case notExecutable:
		return nil, &spawn.CannotStart{Why: h.w.inject(h.l, "start "+id).Error()}
	case fails:
		return nil, h.w.inject(h.l, "start "+id)
	case replyLost:
		_ = start()
		return nil, h.w.inject(h.l, "start "+id)
	case crashAfter:
		_ = start()
	}
	h.w.crash(h.l)
	return nil, errDead
}

// fenced returns the refusal of an engine that was overtaken.
func fenced(epoch uint64) error {
	return &sessionhost.Fenced{Why: fmt.Sprintf("epoch %d was overtaken", epoch)}
}

func (h host) Adopt(_ context.Context, id string, epoch uint64) (proc sessionhost.Process, found sessionhost.Found, err error) {
	err = h.w.act(h.l, "adopt "+id, func() error {
		h.w.mu.Lock()
		defer h.w.mu.Unlock()
		s := h.w.sessions[id]
		if epoch < h.w.fences[id] || (s != nil && epoch < s.fence) {
			return fenced(epoch)
		}
		h.w.fences[id] = epoch
		found = sessionhost.NeverStarted
		if s != nil {
			s.fence = epoch
			proc = &process{w: h.w, l: h.l, hostSession: s, epoch: epoch, at: s.input.taken}
			switch {
			case !s.isOver():
				found = sessionhost.Running
			case s.ending.Lost:
				found = sessionhost.Lost
			default:
				found = sessionhost.Exited
			}
		}
		h.l.found[id] = found
		h.w.notef("%s: %s", id, found)
		return nil
	})
	return proc, found, err
}

func (h host) Output(_ context.Context, id string, offset int64) (io.ReadCloser, error) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	s := h.w.sessions[id]
	if s == nil {
		return nil, fmt.Errorf("no session %s", id)
	}
	return io.NopCloser(bytes.NewReader(s.out[min(offset, int64(len(s.out))):])), nil
}

// Orphans finds none: the journal of a simulated day is never lost.
func (h host) Orphans(context.Context, func(string) bool) ([]sessionhost.Orphan, error) {
	return nil, nil
}

// PutAside does nothing, since there are no orphans.
func (h host) PutAside(string) (string, error) { return "", nil }

// Sweep ends the processes that sessions left behind when their shims disappeared.
func (h host) Sweep(context.Context) (ended []string, err error) {
	if h.w.isDead(h.l) {
		return nil, errDead
	}
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	for _, id := range h.w.started {
		if s := h.w.sessions[id]; s.leftProcesses && s.isOver() {
			s.leftProcesses = false
			ended = append(ended, id)
		}
	}
	return ended, nil
}

// process is one engine's connection to a session.
type process struct {
	*hostSession
	w     *world
	l     *engineRun
	epoch uint64
	at    int64 // the offset of the session's input that this engine knows
}

func (p *process) PID() int              { return 1000 + len(p.id) }
func (p *process) Done() <-chan struct{} { return p.over }
func (p *process) Close() error          { return nil }

func (p *process) allowed() error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	switch {
	case p.l.dead:
		return errDead
	case p.epoch < p.fence:
		return fenced(p.epoch)
	}
	return nil
}

func (p *process) ask(what string, do func()) error {
	return p.w.act(p.l, what+" "+p.id, func() error {
		if err := p.allowed(); err != nil {
			return err
		}
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		do()
		return nil
	})
}

func (p *process) Ended(context.Context) (how session.Exit, err error) {
	err = p.ask("ended", func() { how = p.ending })
	if err != nil {
		p.w.mu.Lock()
		p.exitUnread = true
		p.w.mu.Unlock()
	}
	return how, err
}

func (p *process) End(_ context.Context, grace time.Duration) error {
	return p.ask("end", func() {
		if !p.terminating {
			p.terminating = true
			close(p.sigterm)
			w, s := p.w, p.hostSession
			time.AfterFunc(grace, func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.finish(s, session.Exit{Code: -1, Signal: "SIGKILL", At: time.Now()})
			})
		}
	})
}

func (p *process) Ack(context.Context) error {
	p.w.mu.Lock()
	checks{p.w}.checkAck(p.id)
	p.w.mu.Unlock()
	return p.ask("ack", func() {})
}

func (p *process) Evidence(context.Context) (sessionhost.Proof, error) {
	return sessionhost.Proof{PID: p.PID(), ShimPID: 1, StartedAt: p.begun}, p.allowed()
}

func (p *process) CloseInput(context.Context) error {
	if err := p.allowed(); err != nil {
		return err
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if !p.inputClosed {
		p.inputClosed = true
		close(p.orders)
		p.input.close()
	}
	return nil
}

func (p *process) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	piece := 1 << 16
	if strings.HasSuffix(p.id, "1") || strings.HasSuffix(p.id, "4") {
		piece = 37 // this session's output is read in small pieces
	}
	return &outputReader{p: p, ctx: ctx, cancel: cancel, at: int(offset), piece: piece}, nil
}

type outputReader struct {
	p         *process
	ctx       context.Context
	cancel    context.CancelFunc
	at, piece int
}

func (o *outputReader) Read(b []byte) (int, error) {
	for {
		o.p.w.mu.Lock()
		over, grew, rest := o.p.isOver(), o.p.moreOutput, o.p.out[min(o.at, len(o.p.out)):]
		o.p.w.mu.Unlock()
		if o.ctx.Err() != nil {
			return 0, o.ctx.Err()
		}
		if len(rest) > 0 {
			n := copy(b[:min(len(b), o.piece)], rest)
			o.at += n
			return n, nil
		}
		if over {
			return 0, io.EOF
		}
		select {
		case <-grew:
		case <-o.p.over:
		case <-o.ctx.Done():
			return 0, o.ctx.Err()
		}
	}
}

func (o *outputReader) Close() error {
	o.cancel()
	return nil
}
