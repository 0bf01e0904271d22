// Package ratelimit decides how long an agent waits for the rate limit of its model's provider.
//
// A provider names a time, or none; then the wait is estimated, and doubles with each limit in a row.
//
// The one promise: a wait ends, at the latest after a week.
package ratelimit

import (
	"time"

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

// Report is a rate limit as a session reports it.
type Report struct {
	Until time.Time `json:"until,omitzero"` // zero: unknown
	Why   string    `json:"why,omitempty"`
}

// Cut is a report as it is kept; nil: there is none. cut makes a short line of a text.
func (r *Report) Cut(cut func(string) string) *Report {
	if r == nil {
		return nil
	}
	return &Report{Until: r.Until.UTC().Round(0), Why: cut(r.Why)}
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

// Next is the limit after one more report at a time. until is what the provider names, zero if it names nothing; last is the limit
// before, or nil. longer is false if the wait before lasts as long.
func Next(last *Limited, at, until time.Time, why string) (now Limited, longer bool) {
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
