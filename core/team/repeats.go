package team

import (
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
)

// Programs were seen to end a failed answer as a success, with the error as its text. So many sessions in
// a row that give the same text within so short a time, without a tool call and usage, are such failures:
// a model takes longer, or says it in other words.
const (
	repeatsMax    = 3
	repeatsWithin = 30 * time.Second
)

// RepeatsAnswer reports whether a session that ends now repeats the sessions before it: its text, of which
// alone is the hash, is the same as theirs. After a session that has failed for this reason the next one
// with the same text fails too, however much later: a back-off is between them.
func (a *Agent) RepeatsAnswer(alone string, now time.Time) bool {
	if alone == "" {
		return false
	}
	before := 0
	for _, p := range slices.Backward(a.Past) {
		switch {
		case p.Stop == nil || p.Stop.Alone != alone:
			return false
		case p.Stop.Reason == session.ReasonSameAnswer:
			return true
		case now.Sub(p.EndedAt) > repeatsWithin:
			return false
		}
		if before++; before >= repeatsMax-1 {
			return true
		}
	}
	return false
}
