package status

import (
	"context"
	"fmt"
	"slices"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
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
		switch {
		case c.HostsBeside != nil:
			beside = c.HostsBeside()
		case !c.past() && c.opts.Look == nil || len(t.Hosts.Hosts) == 0: // of a daemon without a cluster
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

// DrainHost lets no new session begin on a host, which leaves when its last one has ended.
func (c *Controller) DrainHost(ctx context.Context, by change.Actor, name string) (uint64, error) {
	return c.orderHost(ctx, by, host.Drain{Name: name})
}

// RemoveHost takes a host out of the team. Sessions that run there end by their deadline.
func (c *Controller) RemoveHost(ctx context.Context, by change.Actor, name string) (uint64, error) {
	return c.orderHost(ctx, by, host.Remove{Name: name})
}

// KeepAlone takes the journal back to the machine of the leader: the other engine hosts are ordinary hosts from then on. The
// daemon starts again with it.
func (c *Controller) KeepAlone(ctx context.Context, by change.Actor) (uint64, error) {
	if c.HostsBeside == nil {
		return 0, &table.Refusal{
			Subject: "the team", Event: string(host.EngineEnded), State: "one host",
			Reason: "this daemon leads no cluster",
		}
	}
	return c.loop.Submit(ctx, by, "", host.Alone{Name: c.HostsBeside().Leader})
}

func (c *Controller) orderHost(ctx context.Context, by change.Actor, what host.Input) (uint64, error) {
	about := what.Subject()
	if c.HostsBeside == nil {
		return 0, &table.Refusal{
			Subject: "host " + about.Entity, Event: string(about.Event), State: string(host.None),
			Reason: "this repository has no other hosts; `fairlead cluster init` begins",
		}
	}
	beside := c.HostsBeside()
	return c.loop.Do(ctx, loop.Request{Event: loop.EventBy(by, "", what), First: func() error {
		if h := c.loop.State().Hosts.Hosts[about.Entity]; h != nil && h.Engine != "" && beside.Replicated {
			return mayGo(&c.loop.State().Hosts, h, about.Event, beside)
		}
		return nil
	}})
}

// mayGo refuses to take an engine host out whose copy of the journal nothing would replace.
func mayGo(all *host.Hosts, h *host.Host, event host.Event, beside view.HostsBeside) error {
	well := 0
	for name, other := range all.Hosts {
		if name != h.Name && other.Engine != "" && other.State == host.Joined && beside.Known[name].Connected {
			well++
		}
	}
	no := &table.Refusal{Subject: "host " + h.Name, Event: string(event), State: string(h.State)}
	switch {
	case h.Name == beside.Leader:
		no.Reason = "it leads the team; let another engine host lead first, with `fairlead cluster lead NAME`"
	case well < beside.EnginesMin:
		no.Reason = fmt.Sprintf("it is an engine host, and the journal is replicated by %d of them; without it %d would be connected. Let another one join first: `fairlead host invite --engine`. For maintenance stop Fairlead on it with `fairlead down`, one machine at a time", beside.EnginesMin, well)
	default:
		return nil
	}
	return no
}

// waitsFor is why no host takes a session; empty: it does not wait for one.
func waitsFor(waiting []view.WaitingSession, session string) string {
	at := slices.IndexFunc(waiting, func(w view.WaitingSession) bool { return w.Session == session })
	if at < 0 {
		return ""
	}
	return waiting[at].Why
}
