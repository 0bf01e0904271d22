package server

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// stage is a Host whose processes are played: the test says what they say and when they end.
type stage struct {
	came chan *player // each process that starts

	mu     sync.Mutex
	actors map[string]*player
	starts func() error                      // called before a start; an error is its result; nil: none
	plays  func(*player)                     // plays what starts; nil: the test does
	read   func(io.ReadCloser) io.ReadCloser // what readers of output get instead; nil: the output
}

func newStage() *stage { return &stage{came: make(chan *player, 64), actors: map[string]*player{}} }

func (h *stage) Start(_ context.Context, session string, _ uint64, launch spawn.Launch, _ time.Duration) (sessionhost.Process, error) {
	p := &player{
		stage: h, session: session, launch: launch, done: make(chan struct{}), told: make(chan string, 64),
		input: int64(len(launch.Input)),
	}
	h.mu.Lock()
	starts, plays := h.starts, h.plays
	h.mu.Unlock()
	if starts != nil {
		if err := starts(); err != nil {
			return nil, err
		}
	}
	if len(launch.Input) > 0 {
		p.told <- string(launch.Input)
	}
	h.mu.Lock()
	h.actors[session] = p
	h.mu.Unlock()
	if plays != nil {
		plays(p)
	}
	select {
	case h.came <- p:
	default: // no test waits for so many
	}
	return p, nil
}

func (h *stage) Adopt(context.Context, string, uint64) (sessionhost.Process, sessionhost.Found, error) {
	return nil, sessionhost.NeverStarted, nil
}

func (h *stage) Output(ctx context.Context, session string, offset int64) (io.ReadCloser, error) {
	p := h.player(session)
	if p == nil {
		return nil, fmt.Errorf("open the output of %s: %w", session, fs.ErrNotExist)
	}
	return p.Output(ctx, offset)
}

func (h *stage) Sweep(context.Context) ([]string, error) { return nil, nil }

func (h *stage) Orphans(context.Context, func(string) bool) ([]sessionhost.Orphan, error) {
	return nil, nil
}

func (h *stage) PutAside(string) (string, error) { return "", nil }

// direct changes how the host behaves from now on.
func (h *stage) direct(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

func (h *stage) player(session string) *player {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.actors[session]
}

// acts waits for the process of a session.
func (h *stage) acts(t testing.TB, session string) *player {
	t.Helper()
	wait.Until(t, session+" has started", func() bool { return h.player(session) != nil })
	return h.player(session)
}

// player is the process of one session.
type player struct {
	stage   *stage
	session string
	launch  spawn.Launch
	out     spool
	done    chan struct{}
	once    sync.Once
	told    chan string // what was written to it, at its start and under a name

	mu    sync.Mutex
	code  int
	input int64
	label string
}

// say writes output.
func (p *player) say(text string) { _, _ = p.out.Write([]byte(text)) }

// leave ends the process.
func (p *player) leave() { p.exit(0) }

// exit ends the process with an exit code.
func (p *player) exit(code int) {
	p.once.Do(func() {
		p.mu.Lock()
		p.code = code
		p.mu.Unlock()
		p.out.End()
		close(p.done)
	})
}

func (p *player) PID() int              { return 4711 }
func (p *player) Done() <-chan struct{} { return p.done }
func (p *player) Ended(context.Context) (session.Exit, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return session.Exit{Code: p.code, At: time.Now(), SpoolBytes: p.out.Len()}, nil
}
func (p *player) End(context.Context, time.Duration) error { p.leave(); return nil }
func (p *player) Ack(context.Context) error                { return nil }
func (p *player) Close() error                             { return nil }
func (p *player) Evidence(context.Context) (sessionhost.Proof, error) {
	return sessionhost.Proof{ShimPID: 1, PID: 4711, StartedAt: time.Now(), Holds: []string{"the test"}}, nil
}

func (p *player) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	if p.stage.read != nil {
		return p.stage.read(p.out.Reader(ctx, offset)), nil
	}
	return p.out.Reader(ctx, offset), nil
}
func (p *player) CloseInput(context.Context) error { return nil }

func (p *player) Send(_ context.Context, input []byte) error {
	p.told <- string(input)
	return nil
}

// SendAs and Input make it an engine.Typist.
func (p *player) SendAs(_ context.Context, label string, input []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.input, p.label = p.input+int64(len(input)), label
	p.told <- string(input)
	return nil
}

func (p *player) Input() (int64, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.input, p.label
}
