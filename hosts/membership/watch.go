package membership

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

// watchMax is the longest time between two looks for deadlines, because a host may have joined meanwhile.
const watchMax = time.Minute

// watch does what is due about the hosts, and returns when to look again.
func (c *Controller) watch(ctx context.Context) (time.Duration, error) {
	var hosts []host.Host
	if err := c.loop.View(ctx, func(t *team.Team) {
		for _, name := range t.Hosts.Names() {
			if h := t.Hosts.Hosts[name]; h.State != host.Left && h.State != host.Lost && name != c.is.Name && h.Capacity > 0 {
				hosts = append(hosts, *h)
			}
		}
	}); err != nil {
		return 0, err
	}
	if err := c.lookHere(ctx); err != nil {
		return 0, err
	}
	next := watchMax
	for i := range hosts {
		due, again := c.due(&hosts[i])
		next = min(next, again)
		var what host.Input
		switch {
		case due == host.DoubtIsDue && hosts[i].DoubtedAt.IsZero():
			what = host.Doubt{Name: hosts[i].Name}
		case due == host.LossIsDue:
			what = host.Lose{Name: hosts[i].Name}
		default:
			continue
		}
		if _, err := c.loop.Submit(ctx, byHosts, "", what); err != nil && ctx.Err() != nil {
			return 0, err
		}
		c.log.Warn("a host does not answer", "host", hosts[i].Name, "due", string(due))
	}
	return next, ctx.Err()
}

// lookHere notes what this machine lacks: it is a host, too.
func (c *Controller) lookHere(ctx context.Context) error {
	own, err := c.known(ctx, c.is.Name)
	if err != nil {
		return nil //nolint:nilerr // it takes no part in its team
	}
	lacks := wire.Lacking(c.uses, own.Lacks, os.Environ(), c.places.Root)
	if slices.Equal(lacks, own.Lacks) {
		return nil
	}
	_, err = c.loop.Submit(ctx, byHosts, "", host.Note{Name: own.Name, Incarnation: own.Incarnation, Lacks: lacks})
	if loop.IsAnswer(err) {
		return nil
	}
	return err
}

// due says what is due about a host, and when something may be. A lease whose time is over is closed first: from
// then on no renewal is taken.
func (c *Controller) due(h *host.Host) (host.Due, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	is, now := c.of(h), c.Clock()
	due := is.Due(now, h.RemovedBy != "")
	if due == host.CloseIsDue {
		is.Saw(is.Revision+1, true, now)
		due = is.Due(now, h.RemovedBy != "")
	}
	silence := now - is.Seen
	switch {
	case silence < host.DoubtAfter:
		return due, time.Duration(host.DoubtAfter - silence)
	case silence < host.LostAfter:
		return due, time.Duration(host.LostAfter - silence)
	}
	return due, watchMax
}
