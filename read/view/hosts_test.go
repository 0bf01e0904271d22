package view

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/team"
)

// hostSentence is a host as it is known, and its sentence.
type hostSentence struct {
	name  string
	is    host.Host
	known HostKnown
	on    []host.OnLost // its sessions
	why   string
}

var (
	noon          = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	hostSentences = []hostSentence{
		{"leads", host.Host{Name: "a", State: host.Joined, Capacity: 4}, HostKnown{}, nil, "it leads the team"},
		{
			"leads and works",
			host.Host{Name: "a", State: host.Joined, Capacity: 4},
			HostKnown{},
			[]host.OnLost{host.Restart},
			"it leads the team; 1 of 4 places for sessions are taken",
		},
		{
			"idle",
			host.Host{Name: "b", State: host.Joined, Capacity: 4},
			HostKnown{Connected: true},
			nil,
			"0 of 4 places for sessions are taken",
		},
		{
			"its disk is full",
			host.Host{
				Name: "b", State: host.Joined, Capacity: 4,
				Lacks: []host.Lack{{What: host.Disk}, {What: host.Variable, Name: "KEY"}},
			},
			HostKnown{Connected: true},
			nil,
			"its disk is almost full, its environment has no KEY: it gets no session that needs that; 0 of 4 places for sessions are taken",
		},
		{
			"of another version",
			host.Host{Name: "b", State: host.Lost, LostAt: noon, Capacity: 4},
			HostKnown{Foreign: "host b is more than one version older than the leader"},
			nil,
			"host b is more than one version older than the leader",
		},
		{
			"full",
			host.Host{Name: "b", State: host.Joined, Capacity: 1},
			HostKnown{Connected: true},
			[]host.OnLost{host.Restart},
			"it is full; further sessions for it wait",
		},
		{
			"not connected yet",
			host.Host{Name: "b", State: host.Joined, Capacity: 4},
			HostKnown{Lease: -1},
			nil,
			"it has not connected since the leader began; `fairlead up` on it connects it",
		},
		{
			"not connected",
			host.Host{Name: "b", State: host.Joined, Capacity: 4},
			HostKnown{},
			nil,
			"it is not connected; without a renewal it is doubted after 15 s",
		},
		{
			"doubted",
			host.Host{Name: "b", State: host.Doubted, DoubtedAt: noon, Capacity: 4},
			HostKnown{},
			nil,
			"its renewals stopped; its sessions end by their own deadline, 45 s after the last one, and it is lost after 65 s; it gets no new session",
		},
		{
			"removed",
			host.Host{Name: "b", State: host.Doubted, DoubtedAt: noon, RemovedBy: "human/ann", Capacity: 4},
			HostKnown{},
			nil,
			"removed by human/ann; its sessions end by their deadline, within 45 s",
		},
		{
			"draining",
			host.Host{Name: "b", State: host.Draining, DrainedBy: "human/ann", Capacity: 4},
			HostKnown{Connected: true},
			[]host.OnLost{host.Restart},
			"it gets no new session, as human/ann asked, and leaves when its session c-0 has ended",
		},
		{
			"draining, by no person",
			host.Host{Name: "b", State: host.Draining, Capacity: 4},
			HostKnown{},
			[]host.OnLost{host.Restart, host.Ask},
			"it gets no new session, and leaves when its 2 sessions have ended",
		},
		{
			"draining and silent",
			host.Host{Name: "b", State: host.Draining, DoubtedAt: noon, Capacity: 4},
			HostKnown{},
			nil,
			"its renewals stopped; its sessions end by their own deadline, 45 s after the last one, and it is lost after 65 s; it was draining",
		},
		{
			"lost",
			host.Host{Name: "b", State: host.Lost, LostAt: noon, Capacity: 4},
			HostKnown{},
			nil,
			"`fairlead up` on it brings it back; `fairlead host remove b` gives it up",
		},
		{
			"lost with sessions",
			host.Host{Name: "b", State: host.Lost, LostAt: noon, Capacity: 4},
			HostKnown{},
			[]host.OnLost{host.Wait, host.Ask, host.Restart},
			"waiting for it (on_lost: wait): c-0; `fairlead up` on it brings it back; `fairlead host remove b` gives it up",
		},
		{
			"has led",
			host.Host{Name: "b", Engine: "b:1", State: host.Joined, Capacity: 4, Branches: true},
			HostKnown{Connected: true},
			nil,
			"0 of 4 places for sessions are taken; it has led, and its branches may have commits that the leader's branches lack",
		},
		{
			"has led, and is an ordinary host now",
			host.Host{Name: "b", State: host.Joined, Capacity: 4, Branches: true},
			HostKnown{Connected: true},
			nil, "0 of 4 places for sessions are taken",
		},
		{
			"has led and is lost",
			host.Host{Name: "b", Engine: "b:1", State: host.Lost, LostAt: noon, Capacity: 4, Branches: true},
			HostKnown{},
			nil, "`fairlead up` on it brings it back; `fairlead host remove b` gives it up; it has led; commits that no other machine has are fetched when it is back",
		},
		{
			"left",
			host.Host{Name: "b", State: host.Left, Capacity: 4},
			HostKnown{},
			nil,
			"it has left; it needs a new invitation to join again",
		},
		{
			"lost with what is missing",
			host.Host{Name: "b", State: host.Lost, LostAt: noon, Capacity: 4, Missing: []host.Missing{{Token: host.Token{Session: "c-7"}}}},
			HostKnown{},
			nil,
			"what it still has of these is fetched when it is back, and changes nothing: c-7; `fairlead up` on it brings it back; `fairlead host remove b` gives it up",
		},
		{
			"was removed",
			host.Host{Name: "b", State: host.Left, RemovedBy: "human/ann", Capacity: 4},
			HostKnown{},
			[]host.OnLost{host.Wait},
			"removed by human/ann; waiting for it (on_lost: wait): c-0; it needs a new invitation to join again",
		},
	}
)

// The sentence of a host says what it is doing, or what to do.
func TestWhyOfAHost(t *testing.T) {
	for _, c := range hostSentences {
		t.Run(c.name, func(t *testing.T) {
			table := host.Hosts{Hosts: map[string]*host.Host{c.is.Name: &c.is}, Leases: map[string]host.Lease{}}
			for i, on := range c.on {
				id := "c-" + string(rune('0'+i))
				table.Leases[id] = host.Lease{Token: host.Token{Session: id, Host: c.is.Name}, OnLost: on}
			}
			all := HostsOf(&table,
				HostsBeside{Team: "team", Leader: "a", Replicated: true, Known: map[string]HostKnown{c.is.Name: c.known}},
				func(string) PlacedSession { return PlacedSession{Agent: "c"} }, nil)
			if got := all.Hosts[0].Why; got != c.why {
				t.Errorf("got:  %s\nwant: %s", got, c.why)
			}
		})
	}
}

// A run waits for a machine only as long as that can come back.
func TestAwayWords(t *testing.T) {
	is := &team.Team{
		Notes: map[string]team.RunMeta{"here": {}, "r1": {Away: "b", Settings: team.RunSettings{OwnFolder: true}}},
		Hosts: host.Hosts{Hosts: map[string]*host.Host{"b": {Name: "b", State: host.Lost, Engine: "b:1"}}},
	}
	if got := AwayWords(is, "here"); got != "" {
		t.Error(got)
	}
	if got := AwayWords(is, "r1"); !strings.Contains(got, "It goes on when b is back") {
		t.Error(got)
	}
	is.Notes["out"] = team.RunMeta{Away: "b", Settings: team.RunSettings{OwnFolder: true, Outside: true}}
	if got := AwayWords(is, "out"); strings.Contains(got, "is back") ||
		!strings.Contains(got,
			"a worktree outside of the repository on b, which led before. It goes on when b leads again: `fairlead cluster lead b`") {
		t.Error(got)
	}
	is.Hosts.Hosts["b"].Engine = ""
	if got := AwayWords(is, "r1"); strings.Contains(got, "is back") ||
		!strings.Contains(got, "is no engine host any longer; `fairlead run resume r1`") {
		t.Error(got)
	}
	is.Hosts.Hosts["b"].State = host.Left
	if got := AwayWords(is, "r1"); strings.Contains(got, "is back") ||
		!strings.Contains(got, "has left the team; `fairlead run resume r1`") {
		t.Error(got)
	}
}

// Branches that lack commits are counted in the line of the leader, and each is in a line of its own.
func TestLeftOfHosts(t *testing.T) {
	left := []Left{{Host: "c", Branch: "main", Why: "branch main …"}, {Host: "c", Branch: "work", Why: "branch work …"}}
	table := host.Hosts{Hosts: map[string]*host.Host{
		"a": {Name: "a", State: host.Joined, Capacity: 1},
		"b": {Name: "b", State: host.Joined, Capacity: 1},
	}}
	for n, want := range []string{
		"it leads the team", "it leads the team; a branch lacks commits of a host that led before",
		"it leads the team; 2 branches lack commits of hosts that led before",
	} {
		all := HostsOf(&table, HostsBeside{Leader: "a", Known: map[string]HostKnown{}, Left: left[:n]}, nil, nil)
		if a, b := all.Hosts[0], all.Hosts[1]; a.Why != want || len(a.Left) != n || n == 2 && a.Left[1] != left[1].Why || len(b.Left) > 0 {
			t.Errorf("%+v, %+v", a, b)
		}
	}
	for n, want := range map[int]string{
		100: "", 101: "1 more branch lacks commits of hosts that led before; 100 are named at a time",
		1900: "1800 more branches lack commits of hosts that led before; 100 are named at a time",
	} {
		many := slices.Repeat(left[:1], n)
		is := HostsOf(&table, HostsBeside{Leader: "a", Known: map[string]HostKnown{}, Left: many}, nil, nil).Hosts[0]
		items, last := BranchItems(many), ""
		if n > 100 {
			last = items[100].Why
		}
		if len(items) != min(n, 101) || len(is.Left) != len(items) || last != want || is.Left[len(is.Left)-1] != items[len(items)-1].Why {
			t.Errorf("%d: %d items, %d lines, the last one is %q", n, len(items), len(is.Left), last)
		}
		if words := "more than 100 branches lack"; strings.Contains(is.Why, words) != (n > 100) {
			t.Errorf("%d: %s", n, is.Why)
		}
	}
}

func TestHostsOf(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	table := host.Hosts{
		Hosts: map[string]*host.Host{
			"b": {Name: "b", State: host.Joined, Capacity: 4, Labels: []string{"gpu"}, JoinedAt: noon, Late: []host.Late{
				{
					Token: host.Token{Session: "coder-1"}, For: "run/T1/work", What: "ended",
					Kept: host.Kept{Output: 5, Files: 1, Ref: "refs/x", Lacks: "its soul"}, At: noon,
				},
				{Token: host.Token{Session: "coder-9"}, For: "run/T9/work", What: "ended", At: noon},
				{Token: host.Token{Session: "coder-0"}, What: "ended", At: noon},
			}},
			"a": {Name: "a", State: host.Joined, Capacity: 2, JoinedAt: noon},
			"c": {
				Name: "c", State: host.Lost, Capacity: 1, JoinedAt: noon, DoubtedAt: noon, LostAt: noon,
				Missing: []host.Missing{{Token: host.Token{Session: "coder-5"}, For: "run/T5/work", OnLost: host.Ask, At: noon}},
			},
		},
		Leases: map[string]host.Lease{
			"coder-3": {Token: host.Token{Session: "coder-3", Host: "b"}, OnLost: host.Wait},
			"coder-2": {Token: host.Token{Session: "coder-2", Host: "b"}, OnLost: host.Restart},
		},
	}
	known := map[string]HostKnown{
		"b": {Connected: true, Address: "10.0.0.2:5000", Version: "1.2.0", Lease: 1500 * time.Millisecond},
		"c": {Lease: -1}, "a": {Connected: true},
	}
	all := HostsOf(&table, HostsBeside{Team: "team", Leader: "a", Known: known, Waiting: []WaitingSession{{Session: "coder-4"}}},
		func(id string) PlacedSession {
			return PlacedSession{Agent: "coder", Run: "T" + id[6:], Step: "work", Since: at}
		}, func(run string) bool { return run == "T9" })
	if !all.On || all.Team != "team" || all.Leader != "a" || len(all.Hosts) != 3 || len(all.Waiting) != 1 {
		t.Fatalf("%+v", all)
	}
	a, b, c := all.Hosts[0], all.Hosts[1], all.Hosts[2]
	if !a.Leader || a.LeaseAgeMS != -1 || !a.Connected || a.Sessions == nil || a.Labels == nil || a.Late == nil {
		t.Errorf("%+v", a)
	}
	if b.Leader || b.LeaseAgeMS != 1500 || !b.Connected || b.Address != "10.0.0.2:5000" || b.Version != "1.2.0" || b.Labels[0] != "gpu" ||
		len(b.Late) != 2 {
		t.Errorf("%+v", b)
	}
	late := LateReport{
		"coder-1", "coder", "T1", "work", "ended", 5, 1, "refs/x", "its soul",
		"5 bytes of output, 1 of its reports and artifacts in .fairlead/hosts/late/T1/coder-1, its folder at refs/x; not kept: its soul",
		at,
	}
	if b.Late[0] != late || b.Late[1].Kept != "nothing new" || b.Late[1].Run != "" {
		t.Errorf("%+v", b.Late)
	}
	want := []PlacedSession{{"coder-2", "coder", "T2", "work", at, "restart"}, {"coder-3", "coder", "T3", "work", at, "wait"}}
	if len(b.Sessions) != 2 || b.Sessions[0] != want[0] || b.Sessions[1] != want[1] {
		t.Errorf("%+v", b.Sessions)
	}
	if then := HostsOf(&table, HostsBeside{Leader: "a"}, func(string) PlacedSession { return PlacedSession{} },
		func(string) bool { return false }); then.Hosts[0].Why != "it led the team" || !then.Hosts[1].Connected ||
		then.Hosts[1].Why != "2 of 4 places for sessions are taken" || then.Hosts[2].Connected {
		t.Errorf("of an earlier moment: %+v", then.Hosts)
	}
	if len(c.Missing) != 1 || c.Missing[0] != (PlacedSession{"coder-5", "coder", "T5", "work", at, "ask"}) {
		t.Errorf("%+v", c.Missing)
	}
	if c.LeaseAgeMS != -1 || c.State != "lost" || !c.LostAt.Equal(at) || !c.DoubtedAt.Equal(at) {
		t.Errorf("%+v", c)
	}
}

// TestMixed checks which hosts are named because of their version.
func TestMixed(t *testing.T) {
	table := host.Hosts{Hosts: map[string]*host.Host{}}
	for name, state := range map[string]host.State{"a": host.Joined, "b": host.Joined, "c": host.Lost, "d": host.Left, "e": host.Joined} {
		table.Hosts[name] = &host.Host{Name: name, State: state, Capacity: 1}
	}
	for _, c := range []struct {
		versions map[string]string
		want     string
	}{
		{map[string]string{"a": "1.5.0", "b": "1.5.0", "c": "1.5.0"}, ""},
		{map[string]string{"b": "1.4.0", "c": "1.5.0"}, ""}, // the leader does not say
		{
			map[string]string{"a": "1.5.0", "b": "1.4.0", "c": "1.6.0", "d": "1.0.0", "e": ""},
			"The leader has version 1.5.0 of Fairlead; b has 1.4.0, c has 1.6.0. Hosts and their leader need the same protocol, so install one version on all machines.",
		},
	} {
		known := map[string]HostKnown{}
		for name, version := range c.versions {
			known[name] = HostKnown{Version: version}
		}
		if got := HostsOf(&table, HostsBeside{Leader: "a", Known: known}, nil, nil).Mixed; got != c.want {
			t.Errorf("%v: %q", c.versions, got)
		}
	}
}
