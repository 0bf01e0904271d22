package notices

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/read/view"
)

// NoticeTargets lists the targets of notices in the order of fairlead.yaml.
func (c *Controller) NoticeTargets(ctx context.Context) ([]view.NoticeTarget, error) {
	shown := []view.NoticeTarget{}
	if c.opts.Notices == nil {
		return shown, nil
	}
	notices, records, now, err := c.look(ctx)
	if err != nil {
		return shown, err
	}
	for _, t := range c.opts.Notices.Targets {
		shown = append(shown, c.target(t, records[t.Name], notices, now))
	}
	return shown, nil
}

func (c *Controller) target(t notice.Target, r notice.Record, notices []notice.Notice, now time.Time) view.NoticeTarget {
	v := view.NoticeTarget{
		Name: t.Name, Kind: c.opts.Notices.Kinds[t.Name], Events: []string{}, PerHour: t.PerHour, State: string(r.State()),
		Waiting: t.Waiting(r, notices, c.started, now),
	}
	for _, e := range t.Events {
		v.Events = append(v.Events, string(e))
	}
	if q := t.Quiet; q.From != q.To {
		v.Quiet = fmt.Sprintf("%s-%s %s", clock(q.From), clock(q.To), q.Zone)
	}
	if f := r.Failure; f != nil {
		v.Since, v.Cause, v.WayOut = &f.Since, f.Cause, f.WayOut
	}
	for _, at := range r.Sent {
		if now.Sub(at) < time.Hour {
			v.LastHour, v.Counted = v.LastHour+1, r.Counted
		}
	}
	if n := len(r.Sent); n > 0 {
		v.LastAt = &r.Sent[n-1]
	}
	return v
}

func clock(of time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(of.Hours()), int(of.Minutes())%60)
}

// TestNotice sends a test notice to one target, or to all without a name. The error is a *team.Unknown or a
// *table.Refusal; a notice that was not delivered is a result.
func (c *Controller) TestNotice(ctx context.Context, by change.Actor, name string) ([]view.NoticeTest, error) {
	done := []view.NoticeTest{}
	refused := &table.Refusal{Subject: "notify", Event: "test", State: "configured"}
	if by.Kind == "agent" {
		refused.Row, refused.Reason = "X10", "only a person sends a test notice"
		return done, refused
	}
	if c.opts.Notices == nil || len(c.opts.Notices.Targets) == 0 {
		refused.State, refused.Reason = "empty", "fairlead.yaml names no target; add one below notify.targets, then run `fairlead reload`"
		return done, refused
	}
	if !c.testing.TryLock() {
		refused.State, refused.Reason = "busy", "a test notice is on its way already; wait for its result"
		return done, refused
	}
	defer c.testing.Unlock()
	targets := slices.DeleteFunc(slices.Clone(c.opts.Notices.Targets), func(t notice.Target) bool { return name != "" && t.Name != name })
	if len(targets) == 0 {
		unknown := &team.Unknown{What: "target of notices", Name: name}
		for _, t := range c.opts.Notices.Targets {
			unknown.Known = append(unknown.Known, t.Name)
		}
		return done, unknown
	}
	done = make([]view.NoticeTest, len(targets))
	errs := make([]error, len(targets))
	var all sync.WaitGroup
	for i, t := range targets {
		all.Go(func() { done[i], errs[i] = c.test(ctx, by, t.Name) })
	}
	all.Wait()
	return done, errors.Join(errs...)
}

func (c *Controller) test(ctx context.Context, by change.Actor, name string) (view.NoticeTest, error) {
	is := view.NoticeTest{Target: name, Kind: c.opts.Notices.Kinds[name]}
	m := notice.Notice{
		Event: notice.Test, Cause: "test", Why: "a person sent this test notice: this target works",
		Page: view.PageLink("inbox"),
	}
	if err := c.loop.View(ctx, func(*team.Team) { m.Since = c.loop.Now() }); err != nil {
		return is, err
	}
	failed := c.opts.Notices.Send(ctx, name, []notice.Notice{m}, 0)
	if is.Delivered = failed == nil; failed != nil {
		is.Cause, is.WayOut = failed.Cause, failed.WayOut
	}
	if err := ctx.Err(); err != nil {
		return is, err
	}
	_, err := c.loop.Submit(ctx, by, "",
		notice.Sent{Target: name, Notices: notice.Plan{Notices: []notice.Notice{m}}.Marks(), Began: c.started, Failure: failed})
	return is, err
}
