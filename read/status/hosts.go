package status

import (
	"context"
	"slices"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Hosts shows the machines on which the team's sessions run.
func (c *Controller) Hosts(ctx context.Context) (view.Hosts, error) {
	all := view.Hosts{Hosts: []view.Host{}, Waiting: []view.WaitingSession{}}
	err := c.loop.View(ctx, func(t *team.Team) {
		engines := 0
		for _, h := range t.Hosts.Hosts {
			if h.Engine != "" && h.State != host.Left {
				engines++
			}
		}
		beside := view.HostsBeside{Leader: t.Leader, Replicated: t.Leader != "" && engines > 2} // cluster.EnginesMin
		switch known, leads := c.cluster.Beside(); {
		case leads:
			beside = known
		case !c.readOnly() && c.opts.Look == nil || len(t.Hosts.Hosts) == 0: // of a daemon without a cluster
			return
		}
		open := map[string]view.PlacedSession{}
		for name, a := range t.Agents {
			for _, s := range a.Sessions() {
				one := view.PlacedSession{Agent: name, Since: s.OpenedAt}
				one.Run, one.Step, _ = team.StepOf(s.For)
				open[s.ID] = one
			}
		}
		// it was withdrawn
		beside.Waiting = slices.DeleteFunc(beside.Waiting, func(w view.WaitingSession) bool { return open[w.Session].Agent == "" })
		all = view.HostsOf(&t.Hosts, beside, func(id string) view.PlacedSession { return open[id] }, archived(t))
	})
	return all, err
}

// waitsFor is why no host takes a session; empty: it does not wait for one.
func waitsFor(waiting []view.WaitingSession, session string) string {
	at := slices.IndexFunc(waiting, func(w view.WaitingSession) bool { return w.Session == session })
	if at < 0 {
		return ""
	}
	return waiting[at].Why
}
