package controller

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/host"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

// A repository of one machine shows no hosts, and refuses orders about them.
func TestNoHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML("true"), nil)
	if all, err := w.engine.Hosts(t.Context()); err != nil || all.On || all.Hosts == nil || all.Waiting == nil {
		t.Errorf("%+v, %v", all, err)
	}
	var no *machine.Refusal
	if _, err := w.engine.DrainHost(t.Context(), human, "b"); !errors.As(err, &no) || !strings.Contains(err.Error(), "cluster init") {
		t.Errorf("%v", err)
	}
}

// The view of the hosts shows the session that is placed on one, and the views of agents and of work name the host.
// Draining and removing are decided by the table of hosts.
func TestHostsView(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML(gated), nil)
	e := w.engine
	e.HostsBeside = func() view.HostsBeside {
		return view.HostsBeside{Team: "harbour", Leader: "a", Known: map[string]view.HostKnown{"b": {Connected: true, Lease: time.Second}}}
	}
	submit := func(what any) {
		t.Helper()
		if _, err := e.Submit(t.Context(), human, "", what); err != nil {
			t.Fatal(err)
		}
	}
	submit(host.Join{Name: "b", Boot: "boot", Capacity: 2, Invited: true})
	w.command("coder", "run_once")
	w.until("coder", "it runs", running)
	if _, err := e.Submit(t.Context(), human, "coder", team.PlaceAsked{Session: "coder-1", OnLost: host.Ask}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.DrainHost(t.Context(), human, "b"); err != nil {
		t.Fatal(err)
	}
	all, err := e.Hosts(t.Context())
	if err != nil || !all.On || all.Team != "harbour" || len(all.Hosts) != 1 {
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
	if all, err := e.Working(t.Context()); err != nil || len(all) != 1 || all[0].Host != "b" {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := e.RemoveHost(t.Context(), human, "b"); err != nil {
		t.Fatal(err)
	}
	if all, err := e.Hosts(t.Context()); err != nil || all.Hosts[0].State != "doubted" || all.Hosts[0].RemovedBy != "human/tester" {
		t.Errorf("%+v, %v", all, err)
	}
	w.write("go", "")
	w.until("coder", "it rests", idle)
	if all, err := e.Hosts(t.Context()); err != nil || len(all.Hosts[0].Sessions) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := e.DrainHost(t.Context(), human, "z"); err == nil || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("%v", err)
	}
}
