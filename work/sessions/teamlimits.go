package sessions

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

const (
	teamEvery = time.Second            // a shim itself ends what takes more than the whole team may
	askWithin = 500 * time.Millisecond // a shim that is stopped delays no look
)

// LimitEnder is a Process on this machine, which ends for a limit of all sessions together.
type LimitEnder interface {
	sessionhost.Process
	EndAt(ctx context.Context, limit session.Limit) error
	Growth(ctx context.Context) (bytesPerSecond int64, err error) // on the disk where .fairlead is
}

// WatchTeam ends the largest session of this machine whenever all of them together use more than the team may, and the one that grows
// fastest whenever too little disk is free. Sessions on other hosts do not count.
func (c *Controller) WatchTeam(ctx context.Context) {
	l := c.opts.Config.Team.Limits
	limited := l.MemoryBytes > 0 || l.Processes > 0 || l.DiskBytes > 0
	disk := &lowDisk{look: c.opts.FreeDisk}
	if !limited && disk.look == nil {
		return
	}
	for retry.Rest(ctx, teamEvery) {
		if limited {
			c.holdTeam(ctx, l)
		}
		if disk.look != nil {
			c.holdDisk(ctx, disk)
		}
	}
}

func (c *Controller) holdTeam(ctx context.Context, l config.Limits) {
	id, limit := Largest(l, askAll(ctx, c, useOf))
	if ender, is := c.Proc(id).(LimitEnder); is {
		c.log.Warn("the team has reached a limit, and its largest session is ended", "session", id, "limit", limit)
		_ = ender.EndAt(ctx, limit) // it has ended, or the next look tries again
	}
}

// useOf is what a session uses. One whose agent has ended does not count.
func useOf(ctx context.Context, p LimitEnder) (session.Use, error) {
	proof, err := p.Evidence(ctx)
	if err == nil && proof.Ended {
		err = shim.ErrEnded
	}
	return proof.Use, err
}

// askAll asks the shims of this machine at the same time. One that does not answer soon is left out.
func askAll[T any](ctx context.Context, c *Controller, ask func(context.Context, LimitEnder) (T, error)) map[string]T {
	c.mu.Lock()
	asked := map[string]LimitEnder{}
	for id, p := range c.procs {
		if here, is := p.(LimitEnder); is {
			asked[id] = here
		}
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	answers := make(map[string]T, len(asked))
	for id, p := range asked {
		asking.Go(func() {
			if answer, err := ask(ctx, p); err == nil {
				mu.Lock()
				defer mu.Unlock()
				answers[id] = answer
			}
		})
	}
	asking.Wait()
	return answers
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
