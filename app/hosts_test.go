package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// A repository of one machine shows no hosts, and refuses orders about them.
func TestNoHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML("true"), nil)
	if all, err := w.engine.Status.Hosts(t.Context()); err != nil || all.On || all.Hosts == nil || all.Waiting == nil {
		t.Errorf("%+v, %v", all, err)
	}
	var no *table.Refusal
	if _, err := w.engine.Cluster.DrainHost(t.Context(), human, "b"); !errors.As(err, &no) || !strings.Contains(err.Error(), "cluster init") {
		t.Errorf("%v", err)
	}
}

// The view of the hosts shows the session that is placed on one, and the views of agents and of work name the host.
// Draining and removing are decided by the table of hosts.
func TestHostsView(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML(gated), nil)
	e := w.engine
	e.Cluster.Given = &atomic.Pointer[view.HostsBeside]{}
	e.Cluster.Given.Store(&view.HostsBeside{
		Team: "harbour", Leader: "a", Known: map[string]view.HostKnown{"b": {Connected: true, Lease: time.Second}},
		Waiting: []view.WaitingSession{{Session: "coder-1"}, {Session: "coder-0"}},
	})
	submit := func(what any) {
		t.Helper()
		if _, err := e.Loop.Submit(t.Context(), human, "", what); err != nil {
			t.Fatal(err)
		}
	}
	submit(host.Join{Name: "b", Boot: "boot", Capacity: 2, Invited: true})
	w.command("coder", "run_once")
	w.until("coder", "it runs", running)
	if _, err := e.Loop.Submit(t.Context(), human, "coder", team.PlaceAsked{Session: "coder-1", OnLost: host.Ask}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Cluster.DrainHost(t.Context(), human, "b"); err != nil {
		t.Fatal(err)
	}
	all, err := e.Status.Hosts(t.Context())
	if err != nil || !all.On || all.Team != "harbour" || len(all.Hosts) != 1 || len(all.Waiting) != 1 ||
		all.Waiting[0].Session != "coder-1" {
		t.Fatalf("%+v, %v", all, err)
	}
	b := all.Hosts[0]
	if b.State != "draining" || b.DrainedBy != "human/tester" || len(b.Sessions) != 1 {
		t.Fatalf("%+v", b)
	}
	if s := b.Sessions[0]; s.Session != "coder-1" || s.Agent != "coder" || s.Since.IsZero() || s.OnLost != "ask" || s.Run != "" {
		t.Errorf("%+v", s)
	}
	if a := w.until("coder", "it runs on b", running); a.Session.Host != "b" || a.Sessions[0].Host != "b" {
		t.Errorf("%+v", a.Session)
	}
	if all, err := e.Status.Working(t.Context()); err != nil || len(all) != 1 || all[0].Host != "b" {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := e.Cluster.RemoveHost(t.Context(), human, "b"); err != nil {
		t.Fatal(err)
	}
	if all, err := e.Status.Hosts(t.Context()); err != nil || all.Hosts[0].State != "doubted" || all.Hosts[0].RemovedBy != "human/tester" {
		t.Errorf("%+v, %v", all, err)
	}
	w.write("go", "")
	w.until("coder", "it rests", idle)
	if all, err := e.Status.Hosts(t.Context()); err != nil || len(all.Hosts[0].Sessions) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := e.Cluster.DrainHost(t.Context(), human, "z"); err == nil || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("%v", err)
	}
}

// A task and its step name the host of their session while it runs, and so they do as of that moment. Then the hosts are
// shown as the journal has them.
func TestHostOfATask(t *testing.T) {
	t.Parallel()
	taskBubble(t, func(_ *bubble, _ int, _ string, s *fakeSession) {
		s.next(time.Minute) // it works
		s.say("stop ok")
	}, nil, func(t *testing.T, b *bubble) {
		b.start()
		happens := func(agent string, what any) {
			t.Helper()
			if _, err := b.engine.Loop.Submit(t.Context(), human, agent, what); err != nil {
				t.Fatal(err)
			}
		}
		happens("", host.Join{Name: "b", Boot: "boot", Capacity: 2, Invited: true})
		b.give("Write the file b")
		happens("coder", team.PlaceAsked{Session: "coder-1"})
		on := func(e *App) string {
			t.Helper()
			r, err := e.Runs.RunByID(t.Context(), "T1")
			if err != nil {
				t.Fatal(err)
			}
			return r.Task.Host + " " + r.Steps[1].Host
		}
		if got := on(b.engine); got != "b b" {
			t.Errorf("the task and its step run on %q", got)
		}
		was := b.history()
		b.after(2 * time.Minute)
		if got := on(b.engine); got != " " {
			t.Errorf("after its end they run on %q", got)
		}
		then, _, err := journal.Until(t.Context(), b.slate, was[len(was)-1].Seq)
		if err != nil {
			t.Fatal(err)
		}
		e, err := OpenReadOnly(t.Context(), outside.Options{
			Name: "test", Config: b.conf, Journal: then, Host: hostHandle{b.host, newCrashPoint(0, false)}, Drivers: b.engine.opts.Drivers,
			Log: slog.New(slog.DiscardHandler), At: time.Now(),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.RunReads(ctx) }()
		all, err := e.Status.Hosts(t.Context())
		if got := on(e); got != "b b" || err != nil || !all.On || len(all.Hosts) != 1 || len(all.Hosts[0].Sessions) != 1 ||
			all.Hosts[0].Sessions[0].Run != "T1" {
			t.Errorf("as of then they run on %q; %+v, %v", got, all, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A machine leads only while the journal has it as an engine host, whatever its own files say.
func TestMayLead(t *testing.T) {
	t.Parallel()
	conf := &config.Config{Sum: "1"}
	is := &outside.Cluster{Name: "b", Stream: true}
	with := func(h host.Host) *team.Team {
		return &team.Team{Hosts: host.Hosts{Hosts: map[string]*host.Host{"b": &h}}}
	}
	for why, no := range map[string]host.Host{
		"the journal went back": {State: host.Joined}, "it has left": {State: host.Left, Engine: "b:1"},
		"it was removed": {State: host.Doubted, Engine: "b:1", RemovedBy: "human/ann"},
	} {
		var fenced *sessionhost.Fenced
		if err := mayLead(is, with(no), conf); !errors.As(err, &fenced) {
			t.Errorf("%s, and it leads: %v", why, err)
		}
	}
	if err := errors.Join(mayLead(is, with(host.Host{State: host.Joined, Engine: "b:1"}), conf), mayLead(is, &team.Team{}, conf),
		mayLead(nil, &team.Team{}, conf)); err != nil {
		t.Error(err)
	}
	// The configuration of the previous leader is another one.
	var fenced *sessionhost.Fenced
	if err := mayLead(is, &team.Team{Leader: "a", Config: "2"}, conf); !errors.As(err, &fenced) ||
		!strings.Contains(fenced.Why, "(1) is not the one with which a leads or led the team (2)") {
		t.Errorf("it leads with another configuration: %v", err)
	}
	if err := errors.Join(mayLead(is, &team.Team{Leader: "b", Config: "2"}, conf), mayLead(is, &team.Team{Leader: "a", Config: "1"}, conf),
		mayLead(is, &team.Team{Leader: "a"}, conf)); err != nil {
		t.Error(err)
	}
}

// The files of agents are orders also when the machine has led a cluster before.
func TestFilesAfterTheCluster(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.conf.Dir = t.TempDir()
		b.others()
		b.start()
		b.is("coder", "pause", "pause")
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.cluster = nil
		b.disk.writeDesired("coder", "pause", "while you slept", time.Now().Add(time.Second))
		b.start()
		b.is("coder", "pause", "pause")
		if note := b.view("coder").Note; note != "while you slept" {
			t.Errorf("note %q", note)
		}
	})
}
