package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/controller"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/exec"
	"github.com/fairlead-dev/fairlead/driver/script"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/memory"
	"github.com/fairlead-dev/fairlead/journal/sqlite"
	"github.com/fairlead-dev/fairlead/view"
	"github.com/fairlead-dev/fairlead/workspace"
	"github.com/google/go-cmp/cmp"
)

// stage is a Host whose processes are played: the test says what they say and when they end.
type stage struct {
	spools *fake // for its sessions only
	mu     sync.Mutex
	actors map[string]*player
	came   chan *player
}

func (s *stage) Start(_ context.Context, session string, _ uint64, launch driver.Launch, _ time.Duration) (seam.Process, error) {
	s.spools.say(session, "")
	p := &player{stage: s, session: session, done: make(chan struct{}), told: make(chan string, 64), input: int64(len(launch.Input))}
	if len(launch.Input) > 0 {
		p.told <- string(launch.Input)
	}
	s.mu.Lock()
	s.actors[session] = p
	s.mu.Unlock()
	s.came <- p
	return p, nil
}

func (s *stage) Adopt(context.Context, string, uint64) (seam.Process, seam.Found, error) {
	return nil, seam.NeverStarted, nil
}

func (s *stage) Output(ctx context.Context, session string, offset int64) (io.ReadCloser, error) {
	out, _, err := s.spools.Output(ctx, session, offset)
	return out, err
}

func (s *stage) Sweep(context.Context) ([]string, error) { return nil, nil }

type player struct {
	stage   *stage
	session string
	done    chan struct{}
	once    sync.Once
	told    chan string // what was written to it, at its start and under a name

	mu    sync.Mutex
	input int64
	label string
}

// leave ends the process.
func (p *player) leave() {
	p.once.Do(func() {
		p.stage.spools.endSession(p.session, "ok")
		close(p.done)
	})
}

func (p *player) PID() int              { return 4711 }
func (p *player) Done() <-chan struct{} { return p.done }
func (p *player) Ended(context.Context) (seam.Ending, error) {
	return seam.Ending{Exit: driver.Exit{At: time.Now()}}, nil
}
func (p *player) End(context.Context, time.Duration) error { p.leave(); return nil }
func (p *player) Ack(context.Context) error                { return nil }
func (p *player) Close() error                             { return nil }
func (p *player) Evidence(context.Context) (seam.Proof, error) {
	return seam.Proof{ShimPID: 1, PID: 4711, StartedAt: time.Now(), Holds: []string{"the test"}}, nil
}

func (p *player) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	return p.stage.Output(ctx, p.session, offset)
}
func (p *player) Send(context.Context, []byte) error { return nil }
func (p *player) CloseInput(context.Context) error   { return nil }

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

// real serves a real engine over its socket, with one agent whose processes are played. stop
// ends both, and complains where one of them did not end well.
func real(t testing.TB, j journal.Journal) (dir string, host *stage, stop func()) {
	return realOf(t, j, "version: 1\nagents:\n  coder:\n    description: Writes code\n    driver: exec\n    command: [\"true\"]\n")
}

// realOf is real with a configuration of its own.
func realOf(t testing.TB, j journal.Journal, yaml string) (dir string, host *stage, stop func()) {
	t.Helper()
	return realIn(t, j, newWorkspace(t), yaml)
}

// realIn is realOf in a workspace that is there.
func realIn(t testing.TB, j journal.Journal, dir, yaml string) (_ string, host *stage, stop func()) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "fairlead.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	conf, err := config.Load(dir, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	files, err := agentfile.Watch(log)
	if err != nil {
		t.Fatal(err)
	}
	host = &stage{spools: newFake(), actors: map[string]*player{}, came: make(chan *player, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	e, err := controller.Open(ctx, seam.Options{
		Name: "demo", Config: conf, Journal: j, Host: host, Files: files, Log: log, Lookup: os.LookupEnv,
		Drivers: map[string]driver.Driver{"exec": exec.Driver{}, "script": script.Driver{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	s := New(Options{Engine: e, Token: testToken, User: "sam", Log: log})
	socket, err := ListenSocket(dir)
	if err != nil {
		t.Fatal(err)
	}
	announce(t, dir, workspace.Daemon{PID: os.Getpid(), Socket: socket.Addr().String()})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, nil, socket) }()
	return dir, host, func() {
		cancel()
		for what, end := range map[string]chan error{"the engine": ran, "the server": served} {
			if err := <-end; err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		files.Close()
	}
}

// From an order at one door to its end as every watcher is told it, with a real engine.
func TestWithARealEngine(t *testing.T) {
	dir, host, stop := real(t, memory.New())
	defer stop()
	playOneSession(t, dir, host)
}

// BenchmarkFlip measures from an order to start over the socket until its answer, with which
// current_state has changed and is durable, beside one bare write and sync of 200 bytes, and beside net/http alone:
// a request over a socket whose handler does nothing but that write and sync.
func BenchmarkFlip(b *testing.B) {
	j, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "journal.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	dir, host, stop := real(b, j)
	defer stop()
	c, err := client.Dial(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	bare, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer bare.Close()
	line := []byte(strings.Repeat("x", 200))
	write := func() {
		if _, err := bare.Write(line); err != nil {
			b.Error(err)
		}
		if err := bare.Sync(); err != nil {
			b.Error(err)
		}
	}
	ask := bareHTTP(b, filepath.Join(b.TempDir(), "bare"), write)
	var flips, syncs, ratios, https []float64
	for b.Loop() {
		began := time.Now()
		write()
		sync := time.Since(began).Seconds()
		began = time.Now()
		ask()
		https = append(https, time.Since(began).Seconds()/sync)

		began = time.Now()
		done, err := c.Command(b.Context(), api.Start, "coder", "")
		flip := time.Since(began).Seconds()
		if err != nil || done.Agent.CurrentState != "continuous" {
			b.Fatalf("%+v, %v", done, err)
		}
		flips, syncs, ratios = append(flips, flip*1e6), append(syncs, sync*1e6), append(ratios, flip/sync)

		actor := <-host.came
		if _, err := c.Command(b.Context(), api.Stop, "coder", ""); err != nil {
			b.Fatal(err)
		}
		actor.leave()
		wait.Until(b, "it rests", func() bool {
			why, err := c.Why(b.Context(), "coder")
			return err == nil && why.Agent.Session == nil && !why.Agent.FileBehind
		})
	}
	for name, values := range map[string][]float64{"µs/flip": flips, "µs/bare-sync": syncs, "flip/bare-sync": ratios, "http/bare-sync": https} {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], name)
	}
	b.ReportMetric(0, "ns/op")
}

// bareHTTP returns a request to a server at a socket that does one thing.
func bareHTTP(b *testing.B, path string, do func()) func() {
	l, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		do()
		_, _ = io.WriteString(w, "{}")
	})}
	go func() { _ = server.Serve(l) }()
	b.Cleanup(func() { _ = server.Close() })
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	asker := &http.Client{Transport: &http.Transport{DialContext: dial}}
	return func() {
		resp, err := asker.Post("http://fairlead/", "application/json", strings.NewReader(`{"note":""}`))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

func playOneSession(t *testing.T, dir string, host *stage) {
	c, err := client.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Hold(t.Context(), "lunch"); err != nil {
		t.Fatal(err)
	}
	if view, err := c.Agents(t.Context()); err != nil || !view.Hold || len(view.Agents) != 1 {
		t.Errorf("held: %+v, %v", view, err)
	}
	if _, err := c.Unhold(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	done, err := c.Command(t.Context(), api.Once, "coder", "try it")
	if err != nil || done.Seq == 0 || done.Agent.Note != "try it" {
		t.Fatalf("%+v, %v", done, err)
	}
	actor := <-host.came
	wait.Until(t, "the badge says RUNNING", func() bool {
		why, err := c.Why(t.Context(), "coder")
		return err == nil && why.Agent.Badge == view.BadgeRunning && why.Agent.Session != nil && why.Agent.Session.PID == 4711
	})
	go func() {
		host.spools.say(actor.session, "hello\n")
		actor.leave()
	}()
	text, _, end := hear(t, c, "coder-1", client.OutputQuery{})
	if text != "hello\n" || end.Outcome != "ok" {
		t.Errorf("output %q, %+v", text, end)
	}
	var told []string
	for ch, err := range c.Events(t.Context(), client.EventsQuery{Entity: "control/coder"}) {
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, strings.TrimSpace(ch.Row+" "+ch.To))
		if ch.Row == "C8" {
			if ch.Actor.Kind != "engine" || len(ch.Data) < 10 {
				t.Errorf("%+v", ch)
			}
			break
		}
	}
	if len(told) < 3 || cmp.Diff([]string{"C8 resting"}, told[len(told)-1:]) != "" {
		t.Errorf("told: %v", told)
	}
	read, err := client.Get[api.Facts](t.Context(), c, "/sessions/coder-1/facts", nil)
	facts := read.Facts
	if err != nil || len(facts) != 1 || facts[0].Text != "hello" {
		t.Errorf("facts: %+v, %v", facts, err)
	}
}
