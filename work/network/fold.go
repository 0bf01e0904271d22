package network

import (
	"context"
	"errors"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

// fold sums up a session's contacts since they were journaled last.
type fold struct {
	agent string
	known map[string]bool // hosts that were reached, and hosts that were refused
	news  []team.Contact
}

const knownMax = 1000 // beyond that, hosts are new again, and journaled at once

// add adds an event. True: the host is new in the session, or is refused for the first time.
func (f *fold) add(host string, e wire.Event) (now bool) {
	c := team.Contact{Host: host, In: e.In, Out: e.Out, First: e.First, Last: e.Last}
	reached := e.Verdict == wire.VerdictAllowed
	if reached {
		c.Reached = e.Count
	} else {
		c.Refused = e.Count
	}
	what := string(e.Verdict) + " " + host
	if now = !f.known[what]; now {
		if f.known == nil || len(f.known) >= knownMax {
			f.known = map[string]bool{}
		}
		f.known[what] = true
	}
	f.news = team.ContactsWith(f.news, []team.Contact{c})
	return now
}

// journalFolds journals what was folded of one session, or of all.
func (c *Controller) journalFolds(ctx context.Context, session string) {
	for id, f := range c.folds {
		if session != "" && id != session || len(f.news) == 0 {
			continue
		}
		_, err := c.loop.Submit(ctx, byProxy, f.agent, team.HostsContacted{Session: id, Hosts: f.news})
		switch {
		case err == nil, errors.As(err, new(*team.Unknown)), errors.As(err, new(*table.Refusal)):
			f.news = nil
		case ctx.Err() == nil:
			c.log.Warn("the hosts that a session reached are not journaled yet", "session", id, "error", err)
		}
	}
	if session == "" {
		c.forget(ctx)
	}
}

// forget drops what is kept of sessions that are over.
func (c *Controller) forget(ctx context.Context) {
	open := map[string]bool{}
	if c.loop.View(ctx, func(t *team.Team) {
		for _, a := range t.Agents {
			for _, s := range a.Sessions() {
				open[s.ID] = true
			}
		}
	}) != nil {
		return
	}
	for id, f := range c.folds {
		if !open[id] && len(f.news) == 0 {
			delete(c.folds, id)
			delete(c.served, id)
			delete(c.once, id)
		}
	}
}
