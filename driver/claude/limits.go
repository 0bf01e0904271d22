package claude

import (
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/adapter"
	"github.com/fairlead-dev/fairlead/internal/lazy"
	"github.com/fairlead-dev/fairlead/machine/session"
)

const (
	reasonTurns   = "max_turns"
	reasonBudget  = "max_budget"
	reasonRefused = "refused"

	statusTooMany    = 429
	heldByBackground = "session_held_by_background"
)

// Phrases for rate limits and exhausted contexts, for results without a field that says so. The
// SDK's documentation names the prefixes "You've hit your" and "You've reached your".
var (
	limitWords   = lazy.Regexp(`(?i)^\s*(you['’]ve (hit|reached) your|claude (ai )?usage limit reached)|\b(rate.?limit|too many requests|429)\b|\bquota\b.*\bexceeded\b|\bexceeded\b.*\bquota\b`)
	contextWords = lazy.Regexp(`(?i)prompt is too long|context (window|length).*(exceed|limit|full)|exceed.*context (window|length)|maximum context length|input is too long`)
	resumeWords  = lazy.Regexp(`(?i)no (conversation|saved session|session) (was )?found`)
)

// verdict classifies the end of an answer.
func verdict(r result, subtype string, seen limits, now time.Time) (driver.Stop, time.Time) {
	text := endWords(r)
	failed := r.IsError || strings.HasPrefix(subtype, "error") || r.StartupFailure != "" || adapter.APIError(text)
	if !failed {
		stop := driver.Stop{OK: true, Reason: adapter.ReasonCompleted}
		if r.StopReason == "refusal" {
			stop = driver.Stop{Reason: reasonRefused, Detail: "the model refused: " + text}
		}
		return stop, time.Time{}
	}
	stop := driver.Stop{Reason: adapter.ReasonFailed, Detail: text}
	switch {
	case subtype == "error_max_turns" || r.TerminalReason == "max_turns":
		stop.Reason = reasonTurns
	case subtype == "error_max_budget_usd" || r.TerminalReason == "budget_exhausted":
		stop.Reason = reasonBudget
	case seen.rejected || seen.word == "rate_limit" || r.APIStatus == statusTooMany || limitWords().MatchString(text):
		stop.Reason = session.ReasonRateLimited
		until := seen.until
		if until.IsZero() {
			until = resetIn(text, now)
		}
		return stop, until
	case r.TerminalReason == "prompt_too_long" || contextWords().MatchString(text):
		stop.Reason = session.ReasonContextExhausted
	case r.StartupFailure == heldByBackground:
		stop.Reason = session.ReasonHeldElsewhere
	case resumeWords().MatchString(text):
		stop.Reason = session.ReasonNotResumed
	case seen.word == "authentication_failed" || driver.KeyRefused(int(max(0, min(r.APIStatus, 999))), text):
		stop.Reason = session.ReasonNotSignedIn
	}
	if stop.Detail == "" {
		stop.Detail = strings.TrimSpace(strings.Join([]string{subtype, r.TerminalReason, r.StartupFailure, seen.word}, " "))
	}
	return stop, time.Time{}
}

// limits collects rate limit information during an answer.
type limits struct {
	rejected bool
	until    time.Time
	kind     string
	word     string // last error of the provider: rate_limit, overloaded, billing_error, …
}

// endWords returns the text of an answer's result.
func endWords(r result) string {
	text := r.Result.Text
	for _, e := range r.Errors {
		if e.Text != "" && !strings.Contains(text, e.Text) {
			text = strings.TrimPrefix(text+"; "+e.Text, "; ")
		}
	}
	return strings.TrimSpace(text)
}

// deniedCalls describes the calls that the program reports as denied, one line each.
func deniedCalls(denials []denial) (calls []string) {
	for _, d := range denials[:min(len(denials), adapter.DeniedMax)] {
		c := ourCall(d.Tool, d.Input)
		calls = append(calls, strings.TrimSpace(adapter.OneLine(c.Tool)+" "+c.what()))
	}
	return calls
}

var (
	resetsAt   = lazy.Regexp(`(?i)\bresets?(?: at)? (?:([a-z]{3}) (\d{1,2})(?:,| at)? )?(\d{1,2})(?::(\d{2}))? ?(am|pm)(?: \(([A-Za-z_]+/[A-Za-z_/]+|UTC)\))?`)
	resetEpoch = lazy.Regexp(`limit reached\|(\d{10})\b`)
)

// resetIn finds the end of a limit in its text, as in "resets Jul 23 at 6pm (America/Los_Angeles)";
// zero if there is none. Without a time zone, the machine's zone is used.
func resetIn(text string, now time.Time) time.Time {
	if m := resetEpoch().FindStringSubmatch(text); m != nil {
		return rate{ResetsAt: adapter.Number(adapter.Digits(m[1]))}.resets()
	}
	m := resetsAt().FindStringSubmatch(text)
	if m == nil {
		return time.Time{}
	}
	zone := now.Location()
	if m[6] != "" {
		loaded, err := time.LoadLocation(m[6])
		if err != nil {
			return time.Time{}
		}
		zone = loaded
	}
	return adapter.ClockTime(now.In(zone), m[1], m[2], "", m[3], m[4], m[5])
}
