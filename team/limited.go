package team

import (
	"cmp"
	"time"

	"github.com/fairlead-dev/fairlead/machine/control"
)

// Limited is what the provider of an agent's model said last: it takes no more until then. That is
// nobody's failure (R1). The agent's seat stays empty meanwhile, and whoever wants it stands in line:
// control, a step, a channel, each as behind anybody else (J1).
type Limited struct {
	Until  time.Time `json:"until,omitzero"` // zero: it is over (R2)
	Why    string    `json:"why,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Times  int       `json:"times,omitempty"`  // in a row, without a session that went well between
	Stated bool      `json:"stated,omitempty"` // the provider named the time; else it is a guess of ours
}

// RateLimit is what a provider said in the middle of a session.
type RateLimit struct {
	Until time.Time `json:"until,omitzero"` // zero: it did not say
	Why   string    `json:"why,omitempty"`
}

func (r *RateLimit) cut() *RateLimit {
	if r == nil {
		return nil
	}
	return &RateLimit{Until: r.Until.UTC().Round(0), Why: cutLine(r.Why)}
}

const (
	limitedFirst = time.Minute        // waited where a provider does not say how long, doubling
	limitedMost  = 30 * time.Minute   // to this
	limitedLeast = time.Second        // a time that has passed already would have us spin
	limitedMax   = 7 * 24 * time.Hour // providers count in weeks at most; what says more is mistaken
)

// Waits says whether an agent is not to be started, since its provider would take nothing.
func (a *Agent) Waits() bool { return a.Limited != nil && !a.Limited.Until.IsZero() }

// liftAt is when the wait is over; zero: it does not wait.
func (a *Agent) liftAt() time.Time {
	if !a.Waits() {
		return time.Time{}
	}
	return a.Limited.Until
}

// words is the wait as people are told of it.
func (l *Limited) words() string {
	text := "rate limited until " + l.Until.UTC().Format("2006-01-02 15:04:05Z")
	if !l.Stated {
		text += " (our guess: its provider does not say)"
	}
	return text
}

// limited notes, at the end of a session, what the provider said; or, after one that went well, that
// the row is over.
func (d *draft) limited(a *Agent, s *Session, until time.Time) {
	if a.step != "" {
		return // no agent of ours
	}
	if s.Outcome == control.OK && a.Limited != nil && a.Limited.Times > 0 {
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
	d.setLimited(a, "R1", "provider_waits", now)
}

// lift ends a wait: its time has come, or a person says so.
func (d *draft) lift(a *Agent) error {
	if !a.Waits() {
		return nil
	}
	next := *a.Limited
	next.Until = time.Time{}
	d.setLimited(a, "R2", "limit_lifted", next)
	return nil
}

func (d *draft) setLimited(a *Agent, row, trigger string, now Limited) {
	from, to := limitWord(a.Limited), limitWord(&now)
	d.add("agent/"+a.Name, "team", row, from, to, trigger, Body{Limited: &now})
	a.Limited = &now
	next := *d.team
	next.Agents = cloneWith(next.Agents, a)
	d.team = &next
}

// cloneWith is the agents with one of them as it is in a draft, for what is decided after it.
func cloneWith(agents map[string]*Agent, a *Agent) map[string]*Agent {
	next := make(map[string]*Agent, len(agents))
	for name, is := range agents {
		next[name] = is
	}
	next[a.Name] = a
	return next
}

func limitWord(l *Limited) string {
	if l == nil || l.Until.IsZero() {
		return "free"
	}
	return "rate_limited"
}

// LimitedWhy is why an agent waits for its provider; empty: it does not.
func (a *Agent) LimitedWhy() string {
	if !a.Waits() {
		return ""
	}
	return a.Limited.words() + ": " + cmp.Or(a.Limited.Why, "no reason given")
}
