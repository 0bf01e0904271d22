package membership

import (
	"context"
	"fmt"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/read/view"
)

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
	beside, leads := c.Beside()
	if !leads {
		return 0, &table.Refusal{
			Subject: "the team", Event: string(host.EngineEnded), State: "one host",
			Reason: "this daemon leads no cluster",
		}
	}
	return c.loop.Submit(ctx, by, "", host.Alone{Name: beside.Leader})
}

func (c *Controller) orderHost(ctx context.Context, by change.Actor, what host.Input) (uint64, error) {
	about := what.Subject()
	beside, leads := c.Beside()
	if !leads {
		return 0, &table.Refusal{
			Subject: "host " + about.Entity, Event: string(about.Event), State: string(host.None),
			Reason: "this repository has no other hosts; `fairlead cluster init` begins",
		}
	}
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
