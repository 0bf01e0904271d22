package sessions

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

const (
	teamEvery = time.Second            // a shim itself ends what takes more than the whole team may
	useWithin = 500 * time.Millisecond // a shim that is stopped delays no look
)

// LimitEnder is a Process that ends for a limit of the team.
type LimitEnder interface {
	EndAt(ctx context.Context, limit session.Limit) error
}

// WatchTeam ends the largest session of this machine whenever all of them together use more than the team may. It returns at once
// without such a limit. Sessions on other hosts do not count.
func (c *Controller) WatchTeam(ctx context.Context) {
	l := c.opts.Config.Team.Limits
	if l.MemoryBytes == 0 && l.Processes == 0 && l.DiskBytes == 0 {
		return
	}
	for retry.Rest(ctx, teamEvery) {
		id, limit := Largest(l, c.uses(ctx))
		if ender, is := c.Proc(id).(LimitEnder); is {
			c.log.Warn("the team has reached a limit, and its largest session is ended", "session", id, "limit", limit)
			_ = ender.EndAt(ctx, limit) // it has ended, or the next look tries again
		}
	}
}

// uses asks the shims of this machine what their sessions use. One whose agent has ended does not count.
func (c *Controller) uses(ctx context.Context) map[string]session.Use {
	c.mu.Lock()
	asked := map[string]sessionhost.Process{}
	for id, p := range c.procs {
		if _, here := p.(LimitEnder); here {
			asked[id] = p
		}
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, useWithin)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	uses := make(map[string]session.Use, len(asked))
	for id, p := range asked {
		asking.Go(func() {
			if proof, err := p.Evidence(ctx); err == nil && !proof.Ended {
				mu.Lock()
				defer mu.Unlock()
				uses[id] = proof.Use
			}
		})
	}
	asking.Wait()
	return uses
}

// Largest names the session to end, and for which limit of the team; empty: none is reached.
func Largest(l config.Limits, uses map[string]session.Use) (id string, limit session.Limit) {
	for _, kind := range []struct {
		limit session.Limit
		most  int64
		of    func(session.Use) int64
	}{
		{session.LimitMemory, l.MemoryBytes, func(u session.Use) int64 { return u.MemoryBytes }},
		{session.LimitProcesses, int64(l.Processes), func(u session.Use) int64 { return int64(u.Processes) }},
		{session.LimitDisk, l.DiskBytes, func(u session.Use) int64 { return u.DiskBytes }},
	} {
		sum, largest := int64(0), ""
		for id, use := range uses {
			sum += kind.of(use)
			if largest == "" || cmp.Or(cmp.Compare(kind.of(use), kind.of(uses[largest])), cmp.Compare(largest, id)) > 0 {
				largest = id
			}
		}
		if kind.most > 0 && sum > kind.most {
			return largest, kind.limit
		}
	}
	return "", ""
}
