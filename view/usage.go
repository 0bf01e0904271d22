package view

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/team"
)

// Add adds a usage to the row.
func (r *UsageRow) Add(u team.Usage) {
	r.InputTokens += u.InputTokens
	r.OutputTokens += u.OutputTokens
	r.CostUSD += u.CostUSD
}

// Budget is a daily limit and what was used of it today (UTC).
type Budget struct {
	Agent    string   `json:"agent,omitempty" doc:"Empty: the limit is that of the team"`
	Measure  string   `json:"measure" enum:"cost_usd,tokens"`
	Limit    float64  `json:"limit"`
	Used     float64  `json:"used"`
	Forecast *float64 `json:"forecast,omitempty" doc:"What is used by the end of the day if it goes on as today: what was used, divided by the part of the day that has passed. Absent in the first hour, and if nothing was used."`
}

// forecastAfter is the part of a day after which its use says something about the rest.
const forecastAfter = time.Hour

// BudgetsOf lists the daily limits of a configuration with their use at a time.
func BudgetsOf(agent string, limits team.Limits, used team.Usage, now time.Time) []Budget {
	var all []Budget
	add := func(measure string, limit, used float64) {
		if limit <= 0 {
			return
		}
		b := Budget{Agent: agent, Measure: measure, Limit: limit, Used: used}
		passed := now.UTC().Sub(now.UTC().Truncate(24 * time.Hour))
		if passed >= forecastAfter && used > 0 {
			forecast := used * float64(24*time.Hour) / float64(passed)
			b.Forecast = &forecast
		}
		all = append(all, b)
	}
	if used.Day != now.UTC().Format(time.DateOnly) {
		used = team.Usage{} // of an earlier day
	}
	add("cost_usd", limits.CostPerDayUSD, used.CostUSD)
	add("tokens", float64(limits.TokensPerDay), float64(used.InputTokens+used.OutputTokens))
	return all
}

// UsageCSV is a usage table as CSV (RFC 4180): one line for each agent and day, and for each run.
func UsageCSV(table UsageTable) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	line := func(cells ...string) {
		for i := range cells {
			cells[i] = harmlessCell(cells[i])
		}
		_ = w.Write(cells) // into memory
	}
	line("kind", "day", "agent", "run", "workflow", "title", "sessions", "input_tokens", "output_tokens", "cost_usd")
	row := func(kind string, r *UsageRow) {
		line(kind, r.Day, r.Agent, r.Run, r.Workflow, r.Title, strconv.Itoa(r.Sessions),
			strconv.FormatInt(r.InputTokens, 10), strconv.FormatInt(r.OutputTokens, 10), strconv.FormatFloat(r.CostUSD, 'f', 6, 64))
	}
	for i := range table.Days {
		row("day", &table.Days[i])
	}
	for i := range table.Runs {
		row("run", &table.Runs[i])
	}
	w.Flush()
	return b.Bytes()
}

// harmlessCell keeps a spreadsheet from taking a text for a formula.
func harmlessCell(cell string) string {
	cell = strings.ReplaceAll(strings.ToValidUTF8(cell, "\ufffd"), "\x00", "\ufffd")
	if cell == "" || !strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
		return cell
	}
	return "'" + cell
}
