package view

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
)

// Each reason why a journal is not replicated has its words, from its code.
func TestUnreplicated(t *testing.T) {
	engines := func(names string) *host.Hosts {
		table := &host.Hosts{Hosts: map[string]*host.Host{
			"x": {Name: "x", State: host.Joined},
			"y": {Name: "y", State: host.Left, Engine: "y:1"},
		}}
		for name := range strings.SplitSeq(names, "") {
			table.Hosts[name] = &host.Host{Name: name, State: host.Joined, Engine: name + ":1"}
		}
		return table
	}
	known := map[string]HostKnown{"a": {Connected: true}, "b": {Connected: true}}
	const of, alone = "The engine hosts are a, b, c. The journal is on a alone", " It is tried again"
	for _, c := range []struct {
		hosts      string
		replicated bool
		is         cluster.Unreplicated
		code       string
		wrong      bool
		want       string
	}{
		{"a", false, cluster.Unreplicated{}, "", false, ""},
		{"abc", true, cluster.Unreplicated{Code: cluster.ServerFailed}, "", false, ""},
		{
			"ab", false,
			cluster.Unreplicated{Code: cluster.NotConnected, Hosts: []string{"c"}},
			"few_engine_hosts", false,
			"The engine hosts are a, b. The journal is on a alone until three of them run.",
		},
		{"abc", false, cluster.Unreplicated{}, "servers_start", false, of + " until their servers have started and it is copied."},
		{
			"abc", false,
			cluster.Unreplicated{Code: cluster.ServerFailed, Fault: "the port is in use"},
			"server_failed", true,
			of + ", because its server does not start: the port is in use." + alone + ".",
		},
		{
			"abc", false,
			cluster.Unreplicated{Code: cluster.NoStream, Fault: "no answer"},
			"no_stream", true,
			of + ", because their servers do not make a stream for it: no answer." + alone + ".",
		},
		{
			"abc", false,
			cluster.Unreplicated{Code: cluster.CopyFailed, Fault: "the disk is full"},
			"copy_failed", true,
			of + ", because it could not be copied to the others: the disk is full." + alone + " every minute.",
		},
		{
			"abc", false,
			cluster.Unreplicated{Code: cluster.NotConnected, Hosts: []string{"c"}},
			"not_connected", true,
			of + ", because its server has no connection to that of c. c is not connected to the leader: `fairlead up` there.",
		},
		{
			"abcd", false,
			cluster.Unreplicated{Code: cluster.NotConnected, Hosts: []string{"b", "c", "d"}},
			"not_connected", true,
			"The engine hosts are a, b, c, d. The journal is on a alone, because its server has no connection to that of b, c, d. c, d are not connected to the leader: `fairlead up` there. Fairlead runs on b: see that no firewall between the engine hosts blocks the port after that of --listen, and what the log there says.",
		},
	} {
		got := HostsOf(engines(c.hosts), HostsBeside{Leader: "a", Known: known, Replicated: c.replicated, Unreplicated: c.is}, nil,
			nil).Unreplicated
		switch {
		case c.code == "":
			if got != nil {
				t.Errorf("%+v: %+v", c.is, got)
			}
		case got == nil || got.Code != c.code || got.Why != c.want || got.Wrong != c.wrong || len(got.Hosts) == 0:
			t.Errorf("%+v: %+v\nwant %s", c.is, got, c.want)
		}
	}
}
