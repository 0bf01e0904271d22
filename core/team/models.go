package team

import (
	"slices"
	"strings"
	"unicode"

	"github.com/fairlead-dev/fairlead/core/change"
)

// An agent's usage is also summed up by the model that did the work.
//
// A program reports what it used and, if it knows, which model used it. A part without a model is never given to one by a guess: it is
// what the total has beyond all parts, and is shown as not reported. So the parts that are kept never exceed their total.

const (
	// modelsPerDay is how many models of one agent and day are told apart. An agent may name as many as it
	// likes; the others are summed up as otherModels.
	modelsPerDay = 16
	// modelNameBytesMax is longer than the name of any known model with its provider and date.
	modelNameBytesMax = 100
)

// otherModels stands for the models of a day beyond modelsPerDay.
const otherModels = "other models"

// ReportModel adds a report to the parts of the next one. Without a model it adds nothing.
func ReportModel(parts []DayUsage, more change.Usage) []DayUsage {
	more.Model = modelName(more.Model)
	if more.Model == "" || more.Empty() {
		return parts
	}
	return putModel(parts, DayUsage{Usage: more})
}

// modelName returns a program's name of a model as it is kept: one short line, or empty if it names none.
func modelName(of string) string {
	of = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(of, "\uFFFD"))
	if of = strings.TrimSpace(of); len(of) <= modelNameBytesMax {
		return of
	}
	return strings.TrimSpace(strings.ToValidUTF8(of[:modelNameBytesMax], ""))
}

// ModelsWithin returns the parts of one report without impossible values, cut to its total: in each measure they sum up to it at most,
// whatever an agent reports.
func ModelsWithin(parts []DayUsage, total change.Usage) []DayUsage {
	var all []DayUsage
	for i := range parts {
		p := parts[i].Usage
		p.InputTokens = min(max(p.InputTokens, 0), total.InputTokens)
		p.OutputTokens = min(max(p.OutputTokens, 0), total.OutputTokens)
		if !(p.CostUSD > 0) { // also false for NaN
			p.CostUSD = 0
		}
		p.CostUSD = min(p.CostUSD, total.CostUSD)
		total.InputTokens -= p.InputTokens
		total.OutputTokens -= p.OutputTokens
		total.CostUSD -= p.CostUSD
		all = ReportModel(all, p)
	}
	return all
}

// AddModels adds the parts of a report to the sums of a day, the newest day of the list, and forgets the
// days before first. The list that it returns shares nothing with sums.
func AddModels(sums, parts []DayUsage, day, first string) []DayUsage {
	if len(parts) == 0 {
		return sums
	}
	sums = slices.DeleteFunc(slices.Clone(sums), func(u DayUsage) bool { return u.Day < first })
	for _, p := range parts {
		p.Day = day
		sums = putModel(sums, p)
	}
	return sums
}

// putModel adds a use to that of its day and model in place, or appends it.
func putModel(all []DayUsage, more DayUsage) []DayUsage {
	models := 0
	for i := range all {
		if all[i].Day != more.Day {
			continue
		}
		models++
		if all[i].Model == more.Model {
			all[i] = all[i].Plus(more)
			return all
		}
	}
	if models >= modelsPerDay-1 && more.Model != otherModels {
		more.Model = otherModels
		return putModel(all, more)
	}
	return append(all, more)
}
