package team

import (
	"cmp"
	"maps"
	"time"

	"github.com/fairlead-dev/fairlead/machine/control"
)

// Limited is the rate limit that the provider of an agent's model reported last. It is not a failure
// (R1). The agent's slot stays empty until the limit ends, and requests for it wait in the queue:
// control, a step, a channel (J1).
type Limited struct {
	Until  time.Time `json:"until,omitzero"` // zero: it has ended (R2)
	Why    string    `json:"why,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Times  int       `json:"times,omitempty"`  // consecutive limits without a successful session in between
	Stated bool      `json:"stated,omitempty"` // the provider named the time; otherwise it is estimated
}

// RateLimit is a provider's rate limit reported during a session.
type RateLimit struct {
	Until time.Time `json:"until,omitzero"` // zero: unknown
	Why   string    `json:"why,omitempty"`
}

func (r *RateLimit) cut() *RateLimit {
	if r == nil {
		return nil
	}
	return &RateLimit{Until: r.Until.UTC().Round(0), Why: cutLine(r.Why)}
}

const (
	limitedFirst = time.Minute        // first wait if the provider names no time, doubling
	limitedMost  = 30 * time.Minute   // longest such wait
	limitedLeast = time.Second        // a time in the past would cause a busy loop
	limitedMax   = 7 * 24 * time.Hour // providers have weekly limits at most; a later time is an error
)

// Waits reports whether an agent must not be started because of a rate limit.
func (a *Agent) Waits() bool { return a.Limited != nil && !a.Limited.Until.IsZero() }

// words describes the wait for people.
func (l *Limited) words() string {
	text := "rate limited until " + l.Until.UTC().Format("2006-01-02 15:04:05Z")
	if !l.Stated {
		text += " (estimated: its provider names no time)"
	}
	return text
}

// limited records, at the end of a session, the provider's rate limit or, after a successful
// session, that there is none.
func (d *decision) limited(a *Agent, s *Session, until time.Time) {
	if a.step() != "" {
		return // a step without an agent
	}
	if s.Outcome == control.OK && a.Limited != nil && a.Limited.Times > 0 && !a.Waits() { // an instance that ends well during the wait says nothing about it
		d.setLimited(a, "R2", "provider_answers", Limited{})
	}
	if s.Outcome != control.RateLimited {
		return
	}
	if until.IsZero() && s.RateLimit != nil {
		until = s.RateLimit.Until
	}
	at := d.ev.At
	now := Limited{Why: cutLine(s.Why), Since: at, Times: 1, Stated: !until.IsZero(), Until: until.UTC().Round(0)}
	if a.Limited != nil {
		now.Times += a.Limited.Times
	}
	if a.Waits() { // another instance reached the same limit before
		now.Times, now.Since = a.Limited.Times, a.Limited.Since
	}
	if until.IsZero() {
		wait := limitedFirst
		for range now.Times - 1 {
			wait = min(2*wait, limitedMost)
		}
		now.Until = at.Add(wait)
	}
	if first := at.Add(limitedLeast); now.Until.Before(first) {
		now.Until = first
	}
	if last := at.Add(limitedMax); now.Until.After(last) {
		now.Until = last
	}
	if a.Waits() && !now.Until.After(a.Limited.Until) {
		return
	}
	d.setLimited(a, "R1", "provider_waits", now)
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
	from, to := limitWord(a.Limited), limitWord(&now)
	d.add("agent/"+a.Name, "team", row, from, to, trigger, Body{Limited: &now})
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

func limitWord(l *Limited) string {
	if l == nil || l.Until.IsZero() {
		return "free"
	}
	return "rate_limited"
}

// LimitedWhy describes why an agent waits for its provider; empty: it does not.
func (a *Agent) LimitedWhy() string {
	if !a.Waits() {
		return ""
	}
	return a.Limited.words() + ": " + cmp.Or(a.Limited.Why, "no reason given")
}
