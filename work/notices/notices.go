package notices

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/backoff"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/runs"
)

const (
	lookEvery  = 250 * time.Millisecond // between two looks at the team: changes can come by the thousand
	lookMax    = time.Minute            // a look at least this often, because the clock can be set and the machine can sleep
	retryFirst = time.Second            // after a failure; four times as long after each further one
	retryMax   = 15 * time.Minute
	retryWrong = time.Hour // after a failure that only a change over there repairs
)

var byNotices = change.Actor{Kind: "engine", ID: "notices"}

// Controller sends notices. Make it with New, then call NotifyPeople once.
type Controller struct {
	loop  *loop.Loop
	opts  outside.Options
	runs  *runs.Controller
	log   *slog.Logger
	flush chan chan struct{} // a request to send what is due before the end

	started time.Time // before the recovery: what that finds is told

	testing sync.Mutex // held while a test notice is sent
}

// New makes the controller.
func New(l *loop.Loop, opts outside.Options, runs *runs.Controller) *Controller {
	return &Controller{loop: l, opts: opts, runs: runs, log: opts.Log, flush: make(chan chan struct{}), started: l.Now()}
}

// receiver is what is known of a target besides its record. Only NotifyPeople uses it.
type receiver struct {
	busy     bool // a message is on its way
	failures int  // in a row
	retryAt  time.Time
	logged   string // the cause that was logged since the last delivery
}

// result is the result of a message.
type result struct {
	target string
	failed *notice.Failure
	at     time.Time
}

// NotifyPeople sends what is due until ctx ends.
func (c *Controller) NotifyPeople(ctx context.Context) {
	if c.opts.Notices == nil || len(c.opts.Notices.Targets) == 0 {
		return
	}
	receivers := map[string]*receiver{}
	for _, t := range c.opts.Notices.Targets {
		receivers[t.Name] = &receiver{}
	}
	results := make(chan result, len(receivers))
	var flushed chan struct{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		changed := c.loop.Changed()
		notices, records, now, err := c.look(ctx)
		if err != nil {
			return // the loop has ended
		}
		again, busy := now.Add(lookMax), 0
		for _, t := range c.opts.Notices.Targets {
			at := c.begin(ctx, t, receivers[t.Name], t.Plan(records[t.Name], notices, c.started, now), now, results)
			again = table.Earliest(again, at)
			if receivers[t.Name].busy {
				busy++
			}
		}
		if flushed != nil && busy == 0 {
			close(flushed)
			flushed = nil
		}
		timer.Reset(max(0, again.Sub(now)))
		select {
		case <-ctx.Done():
			return
		case flushed = <-c.flush:
		case res := <-results:
			c.ended(receivers[res.target], res)
		case <-timer.C:
		case <-c.opts.Notices.Look:
		case <-changed:
			select {
			case flushed = <-c.flush:
			case res := <-results:
				c.ended(receivers[res.target], res)
			default:
				if flushed == nil && !retry.Rest(ctx, lookEvery) {
					return
				}
			}
		}
	}
}

// look reads the team.
func (c *Controller) look(ctx context.Context) (notices []notice.Notice, records map[string]notice.Record, now time.Time, err error) {
	err = c.loop.View(ctx, func(t *team.Team) {
		now = c.loop.Now()
		notices, records = Due(t, now), maps.Clone(t.Notices)
		if stop := c.runs.FetchStopped(); stop != nil {
			notices = append(notices, fetchStopped(stop))
		}
	})
	if c.opts.Notices.Disk != nil {
		if why := c.opts.Notices.Disk(); why != "" {
			notices = append(notices, overDisk(why, now))
		}
	}
	return notices, records, now, err
}

// begin sends what is due for a target, and returns when to look again; zero: after a change.
func (c *Controller) begin(ctx context.Context, t notice.Target, is *receiver, plan notice.Plan, now time.Time,
	results chan<- result,
) time.Time {
	switch {
	case is.busy:
		return time.Time{}
	case len(plan.Notices) == 0:
		return plan.Again
	case is.retryAt.After(now):
		return is.retryAt
	}
	is.busy = true
	c.loop.Go(func(context.Context) {
		failed := c.opts.Notices.Send(ctx, t.Name, plan.Notices, len(plan.More))
		if ctx.Err() != nil {
			return // the next daemon sends it
		}
		sent := notice.Sent{Target: t.Name, Notices: plan.Marks(), Counted: len(plan.More), Began: c.started, Failure: failed}
		if _, err := c.loop.Submit(ctx, byNotices, "", sent); err != nil && failed == nil {
			c.log.Warn("a notice was delivered, but that could not be journaled; it may be sent again", "target", t.Name, "error", err)
		}
		var at time.Time
		if c.loop.View(ctx, func(*team.Team) { at = c.loop.Now() }) != nil {
			return
		}
		results <- result{t.Name, failed, at}
	})
	return time.Time{}
}

// ended notes the result of a message.
func (c *Controller) ended(is *receiver, res result) {
	is.busy = false
	if res.failed == nil {
		*is = receiver{}
		return
	}
	wait := backoff.After(retryFirst, retryMax, 1+2*is.failures)
	if !res.failed.Again {
		wait = retryWrong
	}
	is.failures++
	is.retryAt = res.at.Add(max(wait, res.failed.Wait))
	if is.logged != res.failed.Cause {
		is.logged = res.failed.Cause
		c.log.Warn("a notice could not be delivered; Fairlead tries again, and logs each cause once", "target", res.target,
			"to", c.opts.Notices.Kinds[res.target], "why", res.failed.Cause, "way out", res.failed.WayOut)
	}
}

// FlushNotices waits until everything that is due was sent once, or ctx ends. NotifyPeople must be running.
func (c *Controller) FlushNotices(ctx context.Context) {
	if c.opts.Notices == nil || len(c.opts.Notices.Targets) == 0 {
		return
	}
	done := make(chan struct{})
	select {
	case c.flush <- done:
	case <-ctx.Done():
		return
	case <-c.loop.Context().Done():
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	case <-c.loop.Context().Done():
	}
}
