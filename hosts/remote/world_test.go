package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/hosts/local"
	"github.com/fairlead-dev/fairlead/hosts/remote"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// world is a leader and another host, which speak HTTP/2.
type world struct {
	t      testing.TB
	dir    string // of the host
	guard  *guard
	leader *remote.Host

	mu     sync.Mutex
	up     chan struct{} // closed while the host's daemon runs
	daemon *local.Sessions
	server *httptest.Server
	gone   chan struct{}
	breaks func(*http.Request) breakage // nil: no connection breaks
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), guard: &guard{}, up: make(chan struct{}), gone: make(chan struct{})}
	w.leader = &remote.Host{
		Name: "b", Dial: w.dial, Gone: func(string) <-chan struct{} { return w.gone },
		Log: slog.New(slog.DiscardHandler),
	}
	w.start()
	t.Cleanup(func() {
		w.stop()
		left, err := w.shims().Orphans(context.Background(), func(string) bool { return false })
		if err != nil {
			t.Error(err)
		}
		for _, s := range left {
			w.end(s.Session)
		}
	})
	return w
}

// end ends a session on the host, which its daemon does not follow.
func (w *world) end(session string) {
	p, found, err := w.shims().Adopt(context.Background(), session, w.guard.highest()+1)
	if err != nil {
		w.t.Error(err)
		return
	}
	defer p.Close()
	if found != sessionhost.Running {
		return
	}
	if err := p.End(context.Background(), 0); err != nil {
		w.t.Error(err)
	}
	<-p.Done()
}

func (w *world) shims() *sessions.Shims {
	return &sessions.Shims{Folder: filepath.Join(w.dir, "sessions"), Workspace: w.dir}
}

// start starts the host's daemon.
func (w *world) start() {
	daemon := &local.Sessions{Shims: w.shims(), Guard: w.guard, Log: slog.New(slog.DiscardHandler)}
	mux := http.NewServeMux()
	daemon.Routes(mux)
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.StartTLS()
	if err := daemon.Resume(context.Background(), w.guard.highest()); err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.daemon, w.server = daemon, server
	close(w.up)
}

// stop ends the host's daemon, in the middle of what it does.
func (w *world) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up = make(chan struct{})
	w.server.CloseClientConnections()
	w.server.Close()
	w.daemon.Close()
}

func (w *world) dial(ctx context.Context) (*http.Client, string, error) {
	w.mu.Lock()
	up := w.up
	w.mu.Unlock()
	select {
	case <-up:
	case <-ctx.Done():
		return nil, "", context.Cause(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return &http.Client{Transport: breaker{w, w.server.Client().Transport}}, w.server.URL, nil
}

// Start makes the leader's side a sessionhost.Host, for the suite.
func (w *world) Start(ctx context.Context, session string, epoch uint64, l spawn.Launch, grace time.Duration) (sessionhost.Process, error) {
	return w.leader.StartOn(ctx, startIn(session, epoch, l, grace), session)
}

func startIn(session string, epoch uint64, l spawn.Launch, grace time.Duration) wire.StartIn {
	return wire.StartIn{
		Token: host.Token{Session: session, Host: "b", Incarnation: 1, N: 1}, Epoch: epoch, OnLost: host.Restart,
		GraceMS: grace.Milliseconds(),
		Launch:  l,
	}
}

func (w *world) Adopt(ctx context.Context, session string, epoch uint64) (sessionhost.Process, sessionhost.Found, error) {
	return w.leader.Adopt(ctx, session, epoch)
}

func (w *world) Output(ctx context.Context, session string, offset int64) (io.ReadCloser, error) {
	return w.leader.Output(ctx, session, offset)
}

// Sweep is what the daemon of the host does at its start.
func (w *world) Sweep(ctx context.Context) ([]string, error) { return w.shims().Sweep(ctx) }

func (w *world) Orphans(ctx context.Context, over func(string) bool) ([]sessionhost.Orphan, error) {
	return w.shims().Orphans(ctx, over)
}

func (w *world) PutAside(session string) (string, error) { return w.shims().PutAside(session) }

// guard is the host's, without a leader.
type guard struct {
	mu      sync.Mutex
	epoch   uint64
	refuses error
	asked   int
	holds   func() // nil: the leader answers at once
}

func (g *guard) Home(string) (host.Lease, bool) { return host.Lease{}, false }

func (g *guard) MayStart(ctx context.Context, _ host.Token) (by, end host.BootTime, waits bool, err error) {
	if g.holds != nil {
		g.holds()
		if ctx.Err() != nil {
			return 0, 0, false, context.Cause(ctx)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	return math.MaxInt64, math.MaxInt64, true, g.refuses
}

func (g *guard) Epoch(epoch uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if epoch < g.epoch {
		return &sessionhost.Fenced{Why: fmt.Sprintf("epoch %d: the host has seen %d", epoch, g.epoch)}
	}
	g.epoch = epoch
	return nil
}

func (g *guard) highest() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.epoch
}

// breakage is where a connection breaks.
type breakage int

const (
	breaksNot    breakage = iota
	breaksBefore          // before the host has the request
	breaksAfter           // when the host has acted, before its answer arrives
	breaksMiddle          // in the middle of the answer
	saysBusy              // the host answers that a limit is reached
)

var errBroken = errors.New("the connection broke")

// breaker breaks connections of the leader.
type breaker struct {
	w  *world
	to http.RoundTripper
}

func (b breaker) RoundTrip(r *http.Request) (*http.Response, error) {
	how := breaksNot
	b.w.mu.Lock()
	if b.w.breaks != nil {
		how = b.w.breaks(r)
	}
	b.w.mu.Unlock()
	switch how {
	case breaksBefore:
		return nil, errBroken
	case saysBusy:
		w := httptest.NewRecorder()
		wire.Fail(w, &wire.Problem{Code: wire.Busy, Why: "the limit is reached"})
		return w.Result(), nil
	}
	answer, err := b.to.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch how {
	case breaksAfter:
		if filepath.Base(r.URL.Path) != "output" { // that is not at its end before the session is
			_, _ = io.Copy(io.Discard, answer.Body)
		}
		_ = answer.Body.Close()
		return nil, errBroken
	case breaksMiddle:
		answer.Body = &cut{answer.Body, 1 + rand.Int64N(1<<20)}
	}
	return answer, nil
}

// cut is the body of an answer that breaks.
type cut struct {
	io.ReadCloser
	left int64
}

func (c *cut) Read(b []byte) (int, error) {
	if c.left == 0 {
		return 0, errBroken
	}
	n, err := c.ReadCloser.Read(b[:min(int64(len(b)), c.left)])
	if c.left -= int64(n); err == io.EOF && n > 0 {
		err = errBroken // of a short answer
	}
	return n, err
}

// breaksAtRandom breaks most requests, in all ways.
func (w *world) breaksAtRandom(seed uint64) *world {
	w.t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 19))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breaks = func(*http.Request) breakage { return breakage(chance.IntN(6) % 5) }
	return w
}

func shell(script string) spawn.Launch {
	return spawn.Launch{Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: "/"}
}

func must[V any](t testing.TB) func(V, error) V {
	return func(v V, err error) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// readAll reads an output to its end.
func readAll(t testing.TB, p interface {
	Output(context.Context, int64) (io.ReadCloser, error)
}, offset int64,
) []byte {
	t.Helper()
	out := must[io.ReadCloser](t)(p.Output(t.Context(), offset))
	defer out.Close()
	return must[[]byte](t)(io.ReadAll(out))
}

// readLine reads a line of an output, which runs on.
func readLine(t testing.TB, out io.Reader) string {
	t.Helper()
	var line []byte
	for !bytes.HasSuffix(line, []byte("\n")) {
		var b [1]byte
		if _, err := out.Read(b[:]); err != nil {
			t.Fatalf("after %q: %v", line, err)
		}
		line = append(line, b[0])
	}
	return string(line)
}
