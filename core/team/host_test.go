package team

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/table"
)

// TestPlace places sessions on the hosts of a team, and ends their leases with them.
func TestPlace(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	id := c.session("ada")
	placed := func(want string) {
		t.Helper()
		if got := c.Hosts.Leases[id].Host; got != want {
			t.Errorf("%s is placed on %q, want %q", id, got, want)
		}
	}
	refused := func(agent string, what any, words ...string) {
		t.Helper()
		_, err := c.try(agent, what)
		var no *table.Refusal
		if !errors.As(err, &no) || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(no.Error(), w) }) {
			t.Errorf("%#v: %v, want a refusal with %q", what, err, words)
		}
	}
	refused("ada", PlaceAsked{Session: id}, "H7", "the team has no host")
	c.must("", host.Join{Name: "a", Boot: "boot", Capacity: 1, Invited: true})
	c.must("", host.Join{Name: "b", Boot: "boot", Capacity: 2, Labels: []string{"gpu"}, Invited: true})
	gpu := PlaceAsked{Session: id, Needs: host.Needs{Labels: []string{"gpu"}}}
	refused("ada", PlaceAsked{Session: id, Needs: host.Needs{Labels: []string{"tpu"}}}, "H7", "a: it lacks the label tpu",
		"b: it lacks the label tpu")
	refused("ada", PlaceAsked{Session: "ada-9"}, "it is over, or it never was")
	c.must("ada", gpu)
	placed("b")
	if changes, err := c.try("ada", PlaceAsked{Session: id}); err != nil || len(changes) != 0 {
		t.Errorf("placed again: %v, %v", changes, err)
	}
	c.starts("ada")
	c.must("", host.Drain{Name: "b"})
	placed("b")
	c.ends("ada", control.Lost)
	placed("")
	if h := c.Hosts.Hosts["b"]; h.State != host.Left {
		t.Errorf("its last session has ended, and it is %s", h.State)
	}
	lines := Transitions(change.Change{Machine: "host", Entity: "host/b", From: "joined", To: "doubted", Body: &host.Body{}}, nil)
	if len(lines) != 1 || lines[0].Agent != "" || lines[0].Entity != "host/b" {
		t.Errorf("%+v", lines)
	}
}

// hostHappens applies one random event about a host, or places a session.
func (w *world) hostHappens(how uint64) {
	name := from([]string{"h1", "h2", "h3"}, how)
	how >>= 8
	switch how >> 8 % 8 {
	case 0, 1:
		w.say("", host.Join{Name: name, Boot: from([]string{"b1", "b2"}, how), Capacity: int(how%3) + 1, Invited: true})
	case 2:
		w.say("", from([]any{
			host.Doubt{Name: name},
			host.Lose{Name: name},
			host.Drain{Name: name},
			host.Leave{Name: name},
			host.Remove{Name: name},
		}, how))
	default:
		agent := w.team.Agents[from(everybody, how)]
		for _, s := range agent.Sessions() {
			w.say(agent.Name, PlaceAsked{Session: s.ID, OnLost: from([]host.OnLost{host.Restart, host.Wait}, how)})
		}
	}
	for id := range w.team.Hosts.Leases { // a place belongs to an open session
		if !slices.ContainsFunc(w.team.Names(), func(agent string) bool { return w.team.Agents[agent].Open(id) != nil }) {
			w.t.Fatalf("%s is over and has a place", id)
		}
	}
}

// TestRunFromAHost notes for a run that another host than the leader got its files, as long as the run is known.
func TestRunFromAHost(t *testing.T) {
	for name, c := range map[string]struct {
		leads  bool // the journal is on the leader alone
		leader string
		place  host.Place
		want   string
	}{
		"another host":                 {true, "", host.Place{Host: "b"}, "b"},
		"the leader":                   {true, "", host.Place{Host: "a"}, ""},
		"one of several that can lead": {false, "a", host.Place{Host: "b"}, "b"},
		"that one, which leads":        {false, "b", host.Place{Host: "b"}, ""},
		"the leader before this one":   {false, "a", host.Place{Host: "b", Home: true}, ""},
	} {
		tm := &Team{Agents: map[string]*Agent{"ada": {Session: &Session{
			ID:  "ada-1",
			For: Purpose{Kind: PurposeStep, Run: "r1", Step: "work"},
		}}}, Leader: c.leader}
		tm.Hosts.Hosts = map[string]*host.Host{"a": {Name: "a", Leads: c.leads}, "b": {Name: "b"}}
		tm.noteFrom(&host.Lease{Token: host.Token{Session: "ada-1", Host: c.place.Host}, Home: c.place.Home})
		tm.noteFrom(nil)
		tm.noteFrom(&host.Lease{Token: host.Token{Session: "ada-2", Host: "b"}})
		if got := tm.Notes["r1"].From; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
