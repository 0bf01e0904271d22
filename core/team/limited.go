package team

import (
	"cmp"
	"maps"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team/ratelimit"
)

// Limited is the rate limit that the provider of an agent's model reported last.
type Limited = ratelimit.Limited

// RateLimit is a provider's rate limit reported during a session.
type RateLimit = ratelimit.Report

// Waits reports whether an agent must not be started because of a rate limit.
func (a *Agent) Waits() bool { return a.Limited.Waits() }

// limited records, at the end of a session, the provider's rate limit or, after a successful
// session, that there is none.
func (d *decision) limited(a *Agent, s *Session, until time.Time) {
	if a.step() != "" {
		return // a step without an agent
	}
	// an instance that ends well during the wait says nothing about it
	if s.Outcome == control.OK && a.Limited != nil && a.Limited.Times > 0 && !a.Waits() {
		d.setLimited(a, "R2", "provider_answers", Limited{})
	}
	if s.Outcome != control.RateLimited {
		return
	}
	if until.IsZero() && s.RateLimit != nil {
		until = s.RateLimit.Until
	}
	if now, longer := ratelimit.Next(a.Limited, d.ev.At, until, cutLine(s.Why)); longer {
		d.setLimited(a, "R1", "provider_waits", now)
	}
}

// lift ends a wait: its time has passed, or a person requests it.
func (d *decision) lift(a *Agent) error {
	if !a.Waits() {
		return nil
	}
	next := *a.Limited
	next.Until = time.Time{}
	d.setLimited(a, "R2", "limit_lifted", next)
	return nil
}

func (d *decision) setLimited(a *Agent, row, trigger string, now Limited) {
	d.add("agent/"+a.Name, "team", row, a.Limited.State(), now.State(), trigger, Body{Limited: &now})
	a.Limited = &now
	next := *d.team
	next.Agents = cloneWith(next.Agents, a.at(0))
	d.team = &next
}

// cloneWith returns the agents with one of them replaced by a draft, for later decisions.
func cloneWith(agents map[string]*Agent, a *Agent) map[string]*Agent {
	next := make(map[string]*Agent, len(agents))
	maps.Copy(next, agents)
	next[a.Name] = a
	return next
}

// LimitedWhy describes why an agent waits for its provider; empty: it does not.
func (a *Agent) LimitedWhy() string {
	if !a.Waits() {
		return ""
	}
	return a.Limited.Words() + ": " + cmp.Or(a.Limited.Why, "no reason given")
}
