package api

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/exec"
	"github.com/fairlead-dev/fairlead/engine"
	"github.com/fairlead-dev/fairlead/interop"
	"github.com/fairlead-dev/fairlead/journal/memory"
)

// stage is a Host whose processes are played: the test says what they say and when they end.
type stage struct {
	spools *fake // for its sessions only
	mu     sync.Mutex
	actors map[string]*player
	came   chan *player
}

func (s *stage) Start(_ context.Context, session string, _ uint64, _ driver.Launch, _ time.Duration) (engine.Process, error) {
	s.spools.say(session, "")
	p := &player{stage: s, session: session, done: make(chan struct{})}
	s.mu.Lock()
	s.actors[session] = p
	s.mu.Unlock()
	s.came <- p
	return p, nil
}

func (s *stage) Adopt(context.Context, string, uint64) (engine.Process, engine.Found, error) {
	return nil, engine.NeverStarted, nil
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
func (p *player) Ended(context.Context) (engine.Ending, error) {
	return engine.Ending{Exit: driver.Exit{At: time.Now()}}, nil
}
func (p *player) End(context.Context, time.Duration) error { p.leave(); return nil }
func (p *player) Ack(context.Context) error                { return nil }
func (p *player) Close() error                             { return nil }
func (p *player) Evidence(context.Context) (engine.Proof, error) {
	return engine.Proof{HolderPID: 1, PID: 4711, StartedAt: time.Now(), Holds: []string{"the test"}}, nil
}

func (p *player) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	return p.stage.Output(ctx, p.session, offset)
}
func (p *player) Send(context.Context, []byte) error { return nil }
func (p *player) CloseInput(context.Context) error   { return nil }

// From an order at one door to its end as every watcher is told it, with a real engine.
func TestWithARealEngine(t *testing.T) {
	dir := workspace(t)
	yaml := "version: 1\nagents:\n  coder:\n    description: Writes code\n    driver: exec\n    command: [\"true\"]\n"
	if err := os.WriteFile(filepath.Join(dir, "fairlead.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	conf, err := config.Load(dir, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	files, err := interop.WatchStateFiles(log)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	host := &stage{spools: newFake(), actors: map[string]*player{}, came: make(chan *player, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	e, err := engine.Open(ctx, engine.Options{
		Name: "demo", Config: conf, Journal: memory.New(), Host: host, Files: files, Log: log, Lookup: os.LookupEnv,
		Drivers: map[string]driver.Driver{"exec": exec.Driver{}},
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
	announce(t, dir, engine.Daemon{PID: os.Getpid(), Socket: socket.Addr().String()})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, nil, socket) }()

	playOneSession(t, dir, host)

	cancel()
	for what, end := range map[string]chan error{"the engine": ran, "the server": served} {
		if err := <-end; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func playOneSession(t *testing.T, dir string, host *stage) {
	c, err := Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Hold(t.Context(), "lunch"); err != nil {
		t.Fatal(err)
	}
	if view, err := c.Team(t.Context()); err != nil || !view.Hold || len(view.Agents) != 1 {
		t.Errorf("held: %+v, %v", view, err)
	}
	if _, err := c.Release(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	done, err := c.Command(t.Context(), Once, "coder", "try it")
	if err != nil || done.Seq == 0 || done.Agent.Note != "try it" {
		t.Fatalf("%+v, %v", done, err)
	}
	actor := <-host.came
	eventually(t, "the badge says RUNNING", func() bool {
		why, err := c.Why(t.Context(), "coder")
		return err == nil && why.Agent.Badge == engine.BadgeRunning && why.Agent.Session != nil && why.Agent.Session.PID == 4711
	})
	go func() {
		host.spools.say(actor.session, "hello\n")
		actor.leave()
	}()
	text, _, end := hear(t, c, "coder-1", OutputQuery{})
	if text != "hello\n" || end.Outcome != "ok" {
		t.Errorf("output %q, %+v", text, end)
	}
	var told []string
	for ch, err := range c.Events(t.Context(), EventsQuery{Entity: "control/coder"}) {
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
	facts, err := c.Facts(t.Context(), "coder-1", 0)
	if err != nil || len(facts) != 1 || facts[0].Text != "hello" {
		t.Errorf("facts: %+v, %v", facts, err)
	}
}
