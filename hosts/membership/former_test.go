package membership

import (
	"testing"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
)

// What began on the machine of the previous leader, without a lease, stays there: a new leader begins none of it anew.
func TestLeaseFormer(t *testing.T) {
	t.Parallel()
	is := &team.Team{
		Hosts: host.Hosts{
			Hosts:  map[string]*host.Host{"a": {Name: "a", Leads: true}, "b": {Name: "b"}},
			Leases: map[string]host.Lease{"coder-3": {Token: host.Token{Session: "coder-3", Host: "b"}}},
		},
		Agents: map[string]*team.Agent{},
	}
	for id, phase := range map[string]session.Phase{"coder-1": session.Running, "coder-2": session.Open, "coder-3": session.Running} {
		is.Agents[id] = &team.Agent{Session: &team.Session{ID: id, Phase: phase}}
	}
	if got := FormerLeader(is, "a"); got != "" {
		t.Errorf("%s led before a", got)
	}
	former := FormerLeader(is, "b")
	if former != "a" {
		t.Fatalf("%q led before b", former)
	}
	names := func() (all []string) {
		for _, p := range LeaseFormer(is, former) {
			if p.Host != "a" || p.OnLost != host.Wait || !p.Home {
				t.Errorf("%+v", p)
			}
			all = append(all, p.Session)
		}
		return all
	}
	if got := names(); len(got) != 2 || got[0] != "coder-1" || got[1] != "coder-2" {
		t.Errorf("%v", got)
	}
	is.Leader = "a" // since then a session gets its lease before it starts
	if got := names(); len(got) != 1 || got[0] != "coder-1" {
		t.Errorf("%v", got)
	}
}
