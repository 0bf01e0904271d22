package membership

import (
	"maps"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/internal/version"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Beside is what is known of the hosts beside the journal; false: the team has no other hosts. It may be called in the loop's
// goroutine.
func (c *Controller) Beside() (all view.HostsBeside, leads bool) {
	if c.Given != nil {
		all = *c.Given.Load()
		all.Waiting = slices.Clone(all.Waiting)
		return all, true
	}
	if c.is == nil {
		return all, false
	}
	all = c.noted()
	for name, known := range all.Known { // without mu: the connections ask for members while they hold a lock of their own
		if name != c.is.Name {
			known.Address = c.is.Connected(name)
			known.Connected, known.Foreign = known.Address != "", c.is.Foreign(name)
			all.Known[name] = known
		}
	}
	return all, true
}

// noted is the part of Beside that this controller knows.
func (c *Controller) noted() view.HostsBeside {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := view.HostsBeside{
		Team: c.is.Team, Leader: c.is.Name, Replicated: c.is.Stream, EnginesMin: cluster.EnginesMin,
		Known: map[string]view.HostKnown{c.is.Name: {Connected: true, Version: version.String()}},
	}
	for name := range c.members {
		if name != c.is.Name {
			all.Known[name] = view.HostKnown{Lease: -1}
		}
	}
	for name, is := range c.heard {
		known := view.HostKnown{Version: is.version, Lease: -1}
		known.Differs = c.differs(name)
		if is.last.N > 0 {
			known.Lease = time.Duration(c.Clock() - is.Seen)
		}
		all.Known[name] = known
	}
	if c.is.Stream && c.is.Copies != nil {
		for _, copied := range c.is.Copies() {
			all.Copies = append(all.Copies, view.JournalCopy{Host: copied.Host, InSync: copied.Current, Lacks: copied.Lag})
		}
	}
	if !c.is.Stream && c.is.Unreplicated != nil {
		all.Unreplicated = c.is.Unreplicated()
	}
	for name, is := range c.copying {
		known := all.Known[name]
		if known.Behind = is.behind; is.woken {
			known.Behind = max(known.Behind, 1)
		}
		all.Known[name] = known
	}
	for _, name := range slices.Sorted(maps.Keys(c.left)) {
		if _, belongs := c.members[name]; belongs {
			all.Left = append(all.Left, c.left[name]...)
		}
	}
	all.Placed = maps.Clone(c.why)
	for _, id := range slices.Sorted(maps.Keys(c.waits)) {
		all.Waiting, all.Placed[id] = append(all.Waiting, c.waits[id].WaitingSession), c.waits[id].Why
	}
	return all
}

// Differs reports whether the fairlead.yaml of another engine host is not the one here, as far as it has said.
func (c *Controller) Differs(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.differs(name)
}

// differs is Differs for a caller that has mu.
func (c *Controller) differs(name string) bool {
	is := c.heard[name]
	return is != nil && is.config != "" && c.config != "" && is.config != c.config
}
