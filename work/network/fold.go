package network

import (
	"context"
	"errors"
	"maps"

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

const (
	knownMax  = 1000 // hosts of one session; a program that asks for more looks for a way out, and further ones are counted together
	atOnceMax = 50   // hosts of one session that are journaled when they are new, and not within a minute
	newsMax   = 100  // hosts in one change; team.ContactsWith drops the oldest beyond that

	otherHosts = "other hosts"
)

// add adds an event. True: it is to be journaled now.
func (f *fold) add(host string, e wire.Event) (now bool) {
	what := string(e.Verdict) + " " + host
	isNew := !f.known[what]
	if isNew && len(f.known) >= knownMax {
		host, isNew = otherHosts, false
	}
	c := team.Contact{Host: host, In: e.In, Out: e.Out, First: e.First, Last: e.Last}
	reached := e.Verdict == wire.VerdictAllowed
	if reached {
		c.Reached = e.Count
	} else {
		c.Refused = e.Count
	}
	if isNew {
		if f.known == nil {
			f.known = map[string]bool{}
		}
		f.known[what] = true
	}
	f.news = team.ContactsWith(f.news, []team.Contact{c})
	return isNew && len(f.known) <= atOnceMax || len(f.news) >= newsMax
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
	over := func(id string) bool {
		f := c.folds[id]
		return !open[id] && (f == nil || len(f.news) == 0)
	}
	maps.DeleteFunc(c.served, func(id string, _ *served) bool { return over(id) })
	maps.DeleteFunc(c.once, func(id string, _ []string) bool { return over(id) })
	maps.DeleteFunc(c.tooMany, func(id string, _ bool) bool { return over(id) })
	maps.DeleteFunc(c.folds, func(id string, _ *fold) bool { return over(id) })
}
