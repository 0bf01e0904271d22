package team

import (
	"cmp"
	"maps"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/internal/backoff"
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

// RateLimit is a rate limit as a session reports it.
type RateLimit struct {
	Until time.Time `json:"until,omitzero"` // zero: unknown
	Why   string    `json:"why,omitempty"`
}

// Cut is a report as it is kept; nil: there is none. cut makes a short line of a text.
func (r *RateLimit) Cut(cut func(string) string) *RateLimit {
	if r == nil {
		return nil
	}
	return &RateLimit{Until: r.Until.UTC().Round(0), Why: cut(r.Why)}
}

const (
	limitedFirst = time.Minute        // first wait if the provider names no time, doubling
	limitedMost  = 30 * time.Minute   // longest such wait
	limitedLeast = time.Second        // a time in the past would cause a busy loop
	limitedMax   = 7 * 24 * time.Hour // providers have weekly limits at most; a later time is an error
)

// Waits reports whether the limit has not ended; that of nil has.
func (l *Limited) Waits() bool { return l != nil && !l.Until.IsZero() }

// State is the word for whether an agent waits.
func (l *Limited) State() string {
	if l.Waits() {
		return "rate_limited"
	}
	return "free"
}

// Words describes the wait for people.
func (l *Limited) Words() string {
	text := "rate limited until " + l.Until.UTC().Format("2006-01-02 15:04:05Z")
	if !l.Stated {
		text += " (estimated: its provider names no time)"
	}
	return text
}

// nextLimit is the limit after one more report at a time. until is what the provider names, zero if it names nothing; last is the limit
// before, or nil. longer is false if the wait before lasts as long.
func nextLimit(last *Limited, at, until time.Time, why string) (now Limited, longer bool) {
	now = Limited{Why: why, Since: at, Times: 1, Stated: !until.IsZero(), Until: until.UTC().Round(0)}
	if last != nil {
		now.Times += last.Times
	}
	if last.Waits() { // another instance reached the same limit before
		now.Times, now.Since = last.Times, last.Since
	}
	if until.IsZero() {
		now.Until = at.Add(backoff.After(limitedFirst, limitedMost, now.Times))
	}
	if first := at.Add(limitedLeast); now.Until.Before(first) {
		now.Until = first
	}
	if last := at.Add(limitedMax); now.Until.After(last) {
		now.Until = last
	}
	return now, !last.Waits() || now.Until.After(last.Until)
}

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
	if now, longer := nextLimit(a.Limited, d.ev.At, until, cutLine(s.Why)); longer {
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
	d.add("agent/"+a.Name, "team", row, a.Limited.State(), now.State(), trigger, &now)
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
