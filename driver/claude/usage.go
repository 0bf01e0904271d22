package claude

import (
	"math"

	"github.com/fairlead-dev/fairlead/driver"
)

const (
	messagesCounted = 4096 // requests to a model within one answer; more are counted at its end only
	nanos           = 1e9  // a difference of sums is a sum of money again, without the dust of the subtraction
)

// meter makes reports of use out of what the program says in several places, so that nothing is
// counted twice. While an answer is made it counts what the messages say; those of one request all
// carry its id and its sum, so the greatest counts (documentation of the SDK, cost tracking). At the
// end it makes up for what a running total says beyond that: subagents, and output that the
// messages only guessed at.
//
// Input is all that the model was given to read, whether it came from a cache or not.
type meter struct {
	trusts bool // the sum at an answer's end is right; else only the messages' are (programs.go)

	seen  map[string]driver.Usage // by request, of this answer
	told  driver.Usage            // since the process started, tokens
	known driver.Usage            // what the ends of answers add up to, tokens
	total driver.Usage            // the last running total of all models
	base  driver.Usage            // running totals that have begun anew
	cost  float64                 // the last running total
}

func (u usage) sum() driver.Usage {
	return driver.Usage{
		InputTokens:  u.Input.count() + u.CacheRead.count() + u.CacheWrite.count(),
		OutputTokens: u.Output.count(),
	}
}

// message counts what one request took; the result is what is new in it.
func (m *meter) message(id string, u *usage) driver.Usage {
	if u == nil || id == "" || len(m.seen) >= messagesCounted {
		return driver.Usage{}
	}
	if m.seen == nil {
		m.seen = make(map[string]driver.Usage)
	}
	before, now := m.seen[id], u.sum()
	fresh := driver.Usage{
		InputTokens:  max(now.InputTokens-before.InputTokens, 0),
		OutputTokens: max(now.OutputTokens-before.OutputTokens, 0),
	}
	m.seen[id] = add(before, fresh)
	m.told = add(m.told, fresh)
	return fresh
}

// end counts what the end of an answer says; the result is what was not counted yet.
func (m *meter) end(r result) driver.Usage {
	counted := driver.Usage{}
	for _, u := range m.seen {
		counted = add(counted, u)
	}
	m.seen = nil
	switch {
	case len(r.ModelUsage) > 0:
		var total driver.Usage
		for _, u := range r.ModelUsage {
			total = add(total, usage(u).sum())
		}
		if total.InputTokens < m.total.InputTokens || total.OutputTokens < m.total.OutputTokens {
			m.base = add(m.base, m.total)
		}
		m.total = total
		m.known = add(m.base, total)
	case r.Usage != nil && (m.trusts || counted == driver.Usage{}):
		m.known = add(m.known, r.Usage.sum())
	default:
		m.known = add(m.known, counted)
	}
	rest := driver.Usage{
		InputTokens:  max(m.known.InputTokens-m.told.InputTokens, 0),
		OutputTokens: max(m.known.OutputTokens-m.told.OutputTokens, 0),
	}
	m.told = add(m.told, rest)
	if cost := float64(r.Cost); cost > 0 {
		if cost < m.cost {
			m.cost = 0 // it has begun anew
		}
		rest.CostUSD, m.cost = math.Round((cost-m.cost)*nanos)/nanos, cost
	}
	return rest
}

func add(a, b driver.Usage) driver.Usage {
	return driver.Usage{InputTokens: a.InputTokens + b.InputTokens, OutputTokens: a.OutputTokens + b.OutputTokens}
}
