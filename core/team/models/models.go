// Package models sums up what an agent used by the model that did the work.
//
// A program reports what it used and, if it knows, which model used it. A part without a model is
// never given to one by a guess: it is what the total has beyond all parts, and is shown as not
// reported. So the parts that are kept never exceed their total, and together with the rest they are
// the total.
//
// The one promise: Within(parts, total) sums up to total at most, in each measure, whatever an agent
// reports; and Add keeps that for the sums of many reports.
package models

import (
	"slices"
	"strings"
	"unicode"
)

// Use is what one model used. As part of a sum, Day is its day (UTC).
type Use struct {
	Day          string  `json:"day,omitempty"`
	Model        string  `json:"model"` // in the program's own words
	InputTokens  int64   `json:"input_tokens,omitempty"`
	OutputTokens int64   `json:"output_tokens,omitempty"`
	CostUSD      float64 `json:"cost_usd,omitempty"`
}

const (
	// PerDay is how many models of one agent and day are told apart. An agent may name as many as it
	// likes; the others are summed up as Others.
	PerDay = 16
	// nameBytesMax is longer than the name of any known model with its provider and date.
	nameBytesMax = 100
)

// Others stands for the models of a day beyond PerDay.
const Others = "other models"

// Report adds a report to the parts of the next one. Without a model it adds nothing.
func Report(parts []Use, more Use) []Use {
	more.Model = Name(more.Model)
	if more.Model == "" || more.empty() {
		return parts
	}
	return put(parts, more)
}

// Name returns a program's name of a model as it is kept: one short line, or empty if it names none.
func Name(of string) string {
	of = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(of, "\uFFFD"))
	if of = strings.TrimSpace(of); len(of) <= nameBytesMax {
		return of
	}
	return strings.TrimSpace(strings.ToValidUTF8(of[:nameBytesMax], ""))
}

// Within returns the parts of one report without impossible values, cut to its total.
func Within(parts []Use, total Use) []Use {
	var all []Use
	for _, p := range parts {
		p.InputTokens = min(max(p.InputTokens, 0), total.InputTokens)
		p.OutputTokens = min(max(p.OutputTokens, 0), total.OutputTokens)
		if !(p.CostUSD > 0) { // also false for NaN
			p.CostUSD = 0
		}
		p.CostUSD = min(p.CostUSD, total.CostUSD)
		p.Day = ""
		total.InputTokens -= p.InputTokens
		total.OutputTokens -= p.OutputTokens
		total.CostUSD -= p.CostUSD
		all = Report(all, p)
	}
	return all
}

// Add adds the parts of a report to the sums of a day, the newest day of the list, and forgets the
// days before first. The list that it returns shares nothing with sums.
func Add(sums, parts []Use, day, first string) []Use {
	if len(parts) == 0 {
		return sums
	}
	sums = slices.DeleteFunc(slices.Clone(sums), func(u Use) bool { return u.Day < first })
	for _, p := range parts {
		p.Day = day
		sums = put(sums, p)
	}
	return sums
}

// put adds a use to that of its day and model in place, or appends it.
func put(all []Use, more Use) []Use {
	models := 0
	for i := range all {
		if all[i].Day != more.Day {
			continue
		}
		models++
		if all[i].Model == more.Model {
			all[i].plus(more)
			return all
		}
	}
	if models >= PerDay-1 && more.Model != Others {
		more.Model = Others
		return put(all, more)
	}
	return append(all, more)
}

// sumMax keeps a sum from an overflow; the totals of a team have the same limit.
const sumMax = 1 << 53

func (u *Use) plus(more Use) {
	u.InputTokens = min(u.InputTokens+more.InputTokens, sumMax)
	u.OutputTokens = min(u.OutputTokens+more.OutputTokens, sumMax)
	u.CostUSD = min(u.CostUSD+more.CostUSD, sumMax)
}

func (u Use) empty() bool { return u.InputTokens == 0 && u.OutputTokens == 0 && u.CostUSD == 0 }
