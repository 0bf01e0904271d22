package claude

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

const (
	messagesCounted = 4096 // requests to a model in one answer; further ones are only counted at its end
	nanos           = 1e9  // rounds differences of totals, to remove floating-point noise
)

// meter creates usage reports from values that the program sends in several places, without counting
// anything twice. During an answer it counts the messages: all messages of one request have the same
// ID and cumulative values, so the largest value counts (SDK documentation, cost tracking). At the
// end it adds what a running total contains beyond that: subagents, and output that the messages
// only estimated.
//
// Input is everything that the model read, whether or not it came from a cache.
type meter struct {
	trusts bool // the total at an answer's end is correct; otherwise only the messages' values are (programs.go)

	seen  map[string]change.Usage // by request, for this answer
	event change.Usage            // tokens reported since the process started
	known change.Usage            // tokens according to the ends of answers
	total change.Usage            // the last running total of all models
	base  change.Usage            // sum of earlier running totals that were reset
	cost  float64                 // the last running total

	models map[string]*metered // by the program's name of the model; empty without a running total of each
}

// metered is the same for one model. The sums decide how much is reported, these only whose it is.
type metered struct{ event, total, base change.Usage }

const modelsMax = 64 // more models of one process are not counted separately

func (u usage) sum() change.Usage {
	return change.Usage{
		InputTokens:  u.Input.Count() + u.CacheRead.Count() + u.CacheWrite.Count(),
		OutputTokens: u.Output.Count(),
	}
}

// message counts one request to a model. It returns what is new.
func (m *meter) message(id, model string, u *usage) change.Usage {
	if u == nil || id == "" || len(m.seen) >= messagesCounted {
		return change.Usage{}
	}
	if m.seen == nil {
		m.seen = make(map[string]change.Usage)
	}
	before, now := m.seen[id], u.sum()
	fresh := change.Usage{
		InputTokens:  max(now.InputTokens-before.InputTokens, 0),
		OutputTokens: max(now.OutputTokens-before.OutputTokens, 0),
	}
	m.seen[id] = add(before, fresh)
	m.event = add(m.event, fresh)
	if of := m.of(model); of != nil && !fresh.Empty() {
		of.event = add(of.event, fresh)
		fresh.Model = model
	}
	return fresh
}

// of returns the record of a model; nil for no name, or too many.
func (m *meter) of(model string) *metered {
	if m.models == nil {
		m.models = make(map[string]*metered)
	}
	if m.models[model] == nil && model != "" && len(m.models) < modelsMax {
		m.models[model] = &metered{}
	}
	return m.models[model]
}

// end counts the end of an answer. It returns what was not counted yet, by model as far as the program
// says which it was.
func (m *meter) end(r result) []change.Usage {
	rest := m.rest(r)
	var parts []change.Usage
	for _, name := range slices.Sorted(maps.Keys(r.ModelUsage)) {
		of := m.of(name)
		if of == nil {
			continue
		}
		total := r.ModelUsage[name].sum()
		if total.InputTokens < of.total.InputTokens || total.OutputTokens < of.total.OutputTokens || total.CostUSD < of.total.CostUSD {
			of.base = add(of.base, of.total)
		}
		of.total = total
		part := change.Usage{
			Model:        name,
			InputTokens:  min(max(of.base.InputTokens+total.InputTokens-of.event.InputTokens, 0), rest.InputTokens),
			OutputTokens: min(max(of.base.OutputTokens+total.OutputTokens-of.event.OutputTokens, 0), rest.OutputTokens),
			CostUSD:      min(max(round(of.base.CostUSD+total.CostUSD-of.event.CostUSD), 0), rest.CostUSD),
		}
		if part.Empty() {
			continue
		}
		of.event = add(of.event, part)
		rest.InputTokens -= part.InputTokens
		rest.OutputTokens -= part.OutputTokens
		rest.CostUSD = round(rest.CostUSD - part.CostUSD)
		parts = append(parts, part)
	}
	if !rest.Empty() {
		parts = append(parts, rest)
	}
	return parts
}

func (u modelUsage) sum() change.Usage {
	of := usage{Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output}.sum()
	of.CostUSD = float64(u.Cost)
	return of
}

// round removes floating-point noise from a difference.
func round(usd float64) float64 { return math.Round(usd*nanos) / nanos }

// rest counts the end of an answer over all models.
func (m *meter) rest(r result) change.Usage {
	counted := change.Usage{}
	for _, u := range m.seen {
		counted = add(counted, u)
	}
	m.seen = nil
	switch {
	case len(r.ModelUsage) > 0:
		var total change.Usage
		for _, u := range r.ModelUsage {
			total = add(total, u.sum())
		}
		if total.InputTokens < m.total.InputTokens || total.OutputTokens < m.total.OutputTokens {
			m.base = add(m.base, m.total)
		}
		m.total = total
		m.known = add(m.base, total)
	case r.Usage != nil && (m.trusts || counted == change.Usage{}):
		m.known = add(m.known, r.Usage.sum())
	default:
		m.known = add(m.known, counted)
	}
	rest := change.Usage{
		InputTokens:  max(m.known.InputTokens-m.event.InputTokens, 0),
		OutputTokens: max(m.known.OutputTokens-m.event.OutputTokens, 0),
	}
	m.event = add(m.event, rest)
	if cost := float64(r.Cost); cost > 0 {
		if cost < m.cost {
			m.cost = 0 // the total was reset
		}
		rest.CostUSD, m.cost = round(cost-m.cost), cost
	}
	return rest
}

func add(a, b change.Usage) change.Usage {
	return change.Usage{
		InputTokens: a.InputTokens + b.InputTokens, OutputTokens: a.OutputTokens + b.OutputTokens,
		CostUSD: a.CostUSD + b.CostUSD,
	}
}

const (
	reasonTurns   = "max_turns"
	reasonBudget  = "max_budget"
	reasonRefused = "refused"

	heldByBackground = "session_held_by_background"
)

// Phrases for rate limits and exhausted contexts, for results without a field that says so. The
// SDK's documentation names the prefixes "You've hit your" and "You've reached your".
var (
	limitWords   = regexp.MustCompile(`(?i)^\s*(you['’]ve (hit|reached) your|claude (ai )?usage limit reached)|\b(rate.?limit|too many requests|429)\b|\bquota\b.*\bexceeded\b|\bexceeded\b.*\bquota\b`)
	contextWords = regexp.MustCompile(`(?i)prompt is too long|context (window|length).*(exceed|limit|full)|exceed.*context (window|length)|maximum context length|input is too long`)
	resumeWords  = regexp.MustCompile(`(?i)no (conversation|saved session|session) (was )?found`)
)

// verdict classifies the end of an answer. errs: its text is an error of the provider.
func verdict(r result, subtype string, seen limits, errs bool, now time.Time) (driver.Stop, time.Time) {
	text := endWords(r)
	failed := r.IsError || strings.HasPrefix(subtype, "error") || r.StartupFailure != "" || errs
	if !failed {
		stop := driver.Stop{OK: true, Reason: adapter.ReasonCompleted}
		if r.StopReason == "refusal" {
			stop = driver.Stop{Reason: reasonRefused, Detail: "the model refused: " + text}
		}
		return stop, time.Time{}
	}
	stop := driver.Stop{Reason: adapter.ReasonFailed, Detail: text}
	trouble := troubleOf(seen.word, r.APIStatus)
	switch {
	case subtype == "error_max_turns" || r.TerminalReason == "max_turns":
		stop.Reason = reasonTurns
	case subtype == "error_max_budget_usd" || r.TerminalReason == "budget_exhausted":
		stop.Reason = reasonBudget
	case seen.rejected || trouble == driver.ProviderRateLimit || limitWords.MatchString(text):
		stop.Reason = session.ReasonRateLimited
		until := seen.until
		if until.IsZero() {
			until = resetIn(text, now)
		}
		return stop, until
	case r.TerminalReason == "prompt_too_long" || contextWords.MatchString(text):
		stop.Reason = session.ReasonContextExhausted
	case r.StartupFailure == heldByBackground:
		stop.Reason = session.ReasonProcessConflict
	case resumeWords.MatchString(text):
		stop.Reason = session.ReasonNotResumed
	case trouble == driver.ProviderAuthentication || driver.KeyRefused(0, text):
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
	resetsAt   = regexp.MustCompile(`(?i)\bresets?(?: at)? (?:([a-z]{3}) (\d{1,2})(?:,| at)? )?(\d{1,2})(?::(\d{2}))? ?(am|pm)(?: \(([A-Za-z_]+/[A-Za-z_/]+|UTC)\))?`)
	resetEpoch = regexp.MustCompile(`limit reached\|(\d{10})\b`)
)

// resetIn finds the end of a limit in its text, as in "resets Jul 23 at 6pm (America/Los_Angeles)";
// zero if there is none. Without a time zone, the machine's zone is used.
func resetIn(text string, now time.Time) time.Time {
	if m := resetEpoch.FindStringSubmatch(text); m != nil {
		return rate{ResetsAt: adapter.Number(adapter.Digits(m[1]))}.resets()
	}
	m := resetsAt.FindStringSubmatch(text)
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
