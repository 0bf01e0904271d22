package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
)

// Unreplicated is why the journal is on the leader's machine alone, although the team has several engine hosts.
type Unreplicated struct {
	Code  string   `json:"code" enum:"few_engine_hosts,servers_start,server_failed,not_connected,no_stream,copy_failed"`
	Hosts []string `json:"hosts" doc:"Of not_connected: the hosts to whose servers the leader's has no connection; otherwise all engine hosts"`
	Fault string   `json:"fault,omitempty" doc:"What failed; it is tried again"`
	Wrong bool     `json:"wrong" doc:"A person has to look at it; not if only an engine host is missing, or the servers are starting"`
	Why   string   `json:"why" doc:"The same in words, and what to do"`
}

// unreplicated says why the journal is not replicated; nil: it is, or the team has no other engine host. known is what the leader knows.
func (all *Hosts) unreplicated(known cluster.Unreplicated) *Unreplicated {
	var engines []string
	for i := range all.Hosts {
		if h := &all.Hosts[i]; h.Engine && h.State != string(host.Left) {
			engines = append(engines, h.Name)
		}
	}
	if all.Replicated || len(engines) < 2 {
		return nil
	}
	u := &Unreplicated{Code: string(cmp.Or(known.Code, cluster.ServersStart)), Hosts: known.Hosts, Fault: known.Fault}
	if len(engines) < cluster.EnginesMin {
		u.Code, u.Hosts, u.Fault = string(cluster.FewEngineHosts), nil, ""
	}
	if len(u.Hosts) == 0 {
		u.Hosts = engines
	}
	u.Wrong = u.Code != string(cluster.FewEngineHosts) && u.Code != string(cluster.ServersStart)
	u.Why = all.unreplicatedWords(u, strings.Join(engines, ", "))
	return u
}

func (all *Hosts) unreplicatedWords(u *Unreplicated, engines string) string {
	leader := cmp.Or(all.Leader, "the leader")
	text := fmt.Sprintf("The engine hosts are %s. The journal is on %s alone", engines, leader)
	switch cluster.UnreplicatedCode(u.Code) {
	case cluster.FewEngineHosts:
		return text + " until three of them run."
	case cluster.ServerFailed:
		return fmt.Sprintf("%s, because its server does not start: %s. It is tried again.", text, u.Fault)
	case cluster.NotConnected:
		return text + all.notConnectedWords(u.Hosts)
	case cluster.NoStream:
		return fmt.Sprintf("%s, because their servers do not make a stream for it: %s. It is tried again.", text, u.Fault)
	case cluster.CopyFailed:
		return fmt.Sprintf("%s, because it could not be copied to the others: %s. It is tried again every minute.", text, u.Fault)
	}
	return text + " until their servers have started and it is copied."
}

// notConnectedWords say to which servers that of the leader has no connection, and what to do on each of these hosts.
func (all *Hosts) notConnectedWords(hosts []string) string {
	var up, down []string
	for _, name := range hosts {
		if slices.ContainsFunc(all.Hosts, func(h Host) bool { return h.Name == name && h.Connected }) {
			up = append(up, name)
		} else {
			down = append(down, name)
		}
	}
	text := fmt.Sprintf(", because its server has no connection to that of %s.", strings.Join(hosts, ", "))
	if len(down) > 0 {
		text += fmt.Sprintf(" %s not connected to the leader: `fairlead up` there.", isAre(down))
	}
	if len(up) > 0 {
		text += fmt.Sprintf(" Fairlead runs on %s: see that no firewall between the engine hosts blocks the port after that of --listen, and what the log there says.", strings.Join(up, ", "))
	}
	return text
}

func isAre(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names, ", ") + " are"
}
