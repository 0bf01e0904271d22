package claude

import (
	"math"

	"github.com/fairlead-dev/fairlead/driver"
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

	seen  map[string]driver.Usage // by request, for this answer
	told  driver.Usage            // tokens reported since the process started
	known driver.Usage            // tokens according to the ends of answers
	total driver.Usage            // the last running total of all models
	base  driver.Usage            // sum of earlier running totals that were reset
	cost  float64                 // the last running total
}

func (u usage) sum() driver.Usage {
	return driver.Usage{
		InputTokens:  u.Input.count() + u.CacheRead.count() + u.CacheWrite.count(),
		OutputTokens: u.Output.count(),
	}
}

// message counts one request. It returns what is new.
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

// end counts the end of an answer. It returns what was not counted yet.
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
			total = add(total, usage{Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output}.sum())
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
			m.cost = 0 // the total was reset
		}
		rest.CostUSD, m.cost = math.Round((cost-m.cost)*nanos)/nanos, cost
	}
	return rest
}

func add(a, b driver.Usage) driver.Usage {
	return driver.Usage{InputTokens: a.InputTokens + b.InputTokens, OutputTokens: a.OutputTokens + b.OutputTokens}
}
