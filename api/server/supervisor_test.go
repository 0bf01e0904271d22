package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/files/exchange"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/exec"
	"github.com/fairlead-dev/fairlead/process/driver/script"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
	"github.com/fairlead-dev/fairlead/work/outside"
)

// pair is the team of tests that need no other.
const pair = `version: 1
agents:
  coder: {description: Writes code, driver: exec, command: ["true"]}
  reviewer: {description: Reads code, driver: exec, command: ["true"]}
`

// guests is pair with a channel of two agents that join by requests.
const guests = pair + `  scout: {description: Looks around, loop: foreign}
  pilot: {description: Finds the way, loop: foreign}
channels:
  reviews: {agents: [scout, pilot]}
`

// supervisor is a real controller at work, whose agents' processes are played.
type supervisor struct {
	*app.App
	j     journal.Journal
	host  *stage
	opts  outside.Options
	first uint64 // the last change of its start
	end   func() // ends its loop; the test does it otherwise
}

// supervise starts a controller in a folder, which gets a fairlead.yaml. It ends with the test.
func supervise(t testing.TB, j journal.Journal, dir, yaml string) *supervisor {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	files := agentstate.Watch(log)
	folders, err := dispatchctl.WatchSessions(dir, log)
	if err != nil {
		t.Fatal(err)
	}
	return superviseWith(t, dir, yaml, outside.Options{Journal: j, Files: files, Sessions: folders}, files.Close, folders.Close)
}

// still are the agents' files in a bubble of time, in which no program may watch a folder: none is ever written by others.
type still struct{}

func (still) Add(string, string) error { return nil }

func (still) Deliver(func(agentstate.Seen)) {}

func (still) Read(agent string) (agentstate.Seen, error) {
	return agentstate.Seen{Name: agent, Kind: exchange.KindDeleted}, nil
}
func (still) Confirm(agentstate.Seen)                                                  {}
func (still) Write(context.Context, string, []byte, uint64, func(file.Sum) bool) error { return nil }

// superviseStill is supervise in a bubble of time.
func superviseStill(t testing.TB, j journal.Journal, yaml string) *supervisor {
	t.Helper()
	return superviseWith(t, t.TempDir(), yaml, outside.Options{Journal: j, Files: still{}})
}

func superviseWith(t testing.TB, dir, yaml string, opts outside.Options, close ...func() error) *supervisor {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "fairlead.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	conf, err := config.Load(dir, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	host := newStage()
	opts.Name, opts.Config, opts.Host, opts.Log, opts.Lookup = "demo", conf, host, slog.New(slog.DiscardHandler), os.LookupEnv
	opts.Drivers = map[string]driver.Driver{"exec": exec.Driver{}, "script": script.Driver{}}
	ctx, cancel := context.WithCancel(context.Background())
	e, err := app.Open(ctx, opts)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	s := &supervisor{App: e, j: opts.Journal, host: host, opts: opts, end: sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("the controller: %v", err)
		}
		for _, end := range close {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
	})}
	t.Cleanup(s.end)
	select {
	case <-e.Loop.Ready():
	case err := <-ran:
		ran <- nil
		t.Fatalf("the controller: %v", err)
	}
	s.first = s.head(t)
	return s
}

// head is the sequence of the journal's last change.
func (s *supervisor) head(t testing.TB) uint64 {
	t.Helper()
	head, _, err := s.j.Head(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// add appends n changes of an agent at one go, each an order of ann to pause, and returns the sequence of the last one.
func (s *supervisor) add(t testing.TB, agent string, n int) uint64 {
	t.Helper()
	events := make([]team.Event, n)
	for i := range events {
		events[i] = *s.Agents.CommandRequest(change.Actor{Kind: "human", ID: "ann"}, agent, "pause", fmt.Sprintf("%d <b>&</b>", i)).Event
	}
	last, err := s.Loop.Do(t.Context(), loop.Request{Derive: loop.Report(events...)})
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// changes are those since the start that an order of a person or an agent led to, one line each: the actor, the entity and the row.
func (s *supervisor) changes(t testing.TB) (lines []string) {
	t.Helper()
	for c, err := range s.j.Read(context.WithoutCancel(t.Context()), journal.Query{After: s.first}) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Actor.Kind == "human" || c.Actor.Kind == "agent" {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s: %s %s %s", c.Actor.Kind, c.Actor.ID, c.Entity, c.Row, c.To)))
		}
	}
	return lines
}

// orders counts the changes that an order of a person or an agent led to. The engine's own may come at any time.
func (s *supervisor) orders(t testing.TB) int {
	t.Helper()
	return len(s.changes(t))
}

// unchanged complains if a person or an agent has ordered anything since the start.
func (s *supervisor) unchanged(t testing.TB) {
	t.Helper()
	if all := s.changes(t); len(all) > 0 {
		t.Errorf("orders: %q", all)
	}
}

// begin starts an agent once and returns its process.
func (s *supervisor) begin(t testing.TB, agent string, n int) *player {
	t.Helper()
	if _, err := s.Agents.Command(t.Context(), change.Actor{Kind: "human", ID: "ann"}, agent, "run_once", ""); err != nil {
		t.Fatal(err)
	}
	return s.host.acts(t, fmt.Sprintf("%s-%d", agent, n))
}

// over ends a process and waits until the journal has the end of its session.
func (s *supervisor) over(t testing.TB, p *player) {
	t.Helper()
	p.leave()
	agent, _, _ := strings.Cut(p.session, "-")
	if err := s.Loop.Until(t.Context(), func(all *team.Team) bool { return all.Agents[agent].Open(p.session) == nil }); err != nil {
		t.Fatal(err)
	}
}
