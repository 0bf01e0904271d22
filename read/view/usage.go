package view

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/team"
)

// Add adds a usage to the row.
func (r *UsageRow) Add(u change.Usage) {
	r.InputTokens += u.InputTokens
	r.OutputTokens += u.OutputTokens
	r.CostUSD += u.CostUSD
}

// ByModel sums up usage by model. What days have beyond the parts whose model was reported is a row without a model.
type ByModel struct {
	rows map[string]*UsageRow
	rest UsageRow
}

// leastCost is below the smallest price that is shown; less is noise of sums.
const leastCost = 1e-6

// Add adds an agent's days, and the parts of them whose model was reported.
func (m *ByModel) Add(days, parts []team.DayUsage) {
	var rest UsageRow
	for _, day := range days {
		rest.Add(day.Usage)
	}
	for _, p := range parts {
		if m.rows == nil {
			m.rows = map[string]*UsageRow{}
		}
		if m.rows[p.Model] == nil {
			m.rows[p.Model] = &UsageRow{Model: p.Model}
		}
		m.rows[p.Model].Add(p.Usage)
		rest.Add(change.Usage{InputTokens: -p.InputTokens, OutputTokens: -p.OutputTokens, CostUSD: -p.CostUSD})
	}
	m.rest.Add(change.Usage{InputTokens: max(rest.InputTokens, 0), OutputTokens: max(rest.OutputTokens, 0), CostUSD: max(rest.CostUSD, 0)})
}

// Rows lists the models, the most expensive first, and what no model was reported for last.
func (m *ByModel) Rows() []UsageRow {
	rows := make([]UsageRow, 0, len(m.rows)+1)
	for _, r := range m.rows {
		rows = append(rows, *r)
	}
	slices.SortFunc(rows, func(a, b UsageRow) int {
		return cmp.Or(cmp.Compare(b.CostUSD, a.CostUSD), cmp.Compare(b.tokens(), a.tokens()), cmp.Compare(a.Model, b.Model))
	})
	if m.rest.tokens() > 0 || m.rest.CostUSD > leastCost {
		rows = append(rows, m.rest)
	}
	return rows
}

func (r *UsageRow) tokens() int64 { return r.InputTokens + r.OutputTokens }

// UsageBy is what usage may be summed up by.
var UsageBy = []string{"day", "agent", "task", "model"}

// UsageGroups is a usage table summed up by one thing.
type UsageGroups struct {
	By    string     `json:"by"`
	Rows  []UsageRow `json:"rows"`
	Total UsageRow   `json:"total"`
}

// By sums the table up by one of UsageBy. A task is a run, whether or not it has a task's text.
func (t *UsageTable) By(what string) UsageGroups {
	g := UsageGroups{By: what, Rows: []UsageRow{}}
	switch what {
	case "day":
		for i := range t.Days { // the newest first
			if last := len(g.Rows) - 1; last < 0 || g.Rows[last].Day != t.Days[i].Day {
				g.Rows = append(g.Rows, UsageRow{Day: t.Days[i].Day})
			}
			g.Rows[len(g.Rows)-1].plus(&t.Days[i])
		}
	case "agent":
		g.Rows = append(g.Rows, t.Agents...)
	case "task":
		g.Rows = append(g.Rows, t.Runs...)
	case "model":
		g.Rows = append(g.Rows, t.Models...)
	}
	for i := range g.Rows {
		g.Total.plus(&g.Rows[i])
	}
	return g
}

func (r *UsageRow) plus(more *UsageRow) {
	r.Add(change.Usage{InputTokens: more.InputTokens, OutputTokens: more.OutputTokens, CostUSD: more.CostUSD})
	r.Sessions += more.Sessions
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
func BudgetsOf(agent string, limits team.Limits, used team.DayUsage, now time.Time) []Budget {
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
		used = team.DayUsage{} // of an earlier day
	}
	add("cost_usd", limits.CostPerDayUSD, used.CostUSD)
	add("tokens", float64(limits.TokensPerDay), float64(used.InputTokens+used.OutputTokens))
	return all
}

// UsageCSV is a usage table as CSV (RFC 4180): one line for each agent and day, for each run, and for each model.
func UsageCSV(table UsageTable) []byte {
	return usageCSV(csvPart{"day", table.Days}, csvPart{"run", table.Runs}, csvPart{"model", table.Models})
}

// CSV is one line for each row.
func (g *UsageGroups) CSV() []byte { return usageCSV(csvPart{g.By, g.Rows}) }

type csvPart struct {
	kind string
	rows []UsageRow
}

func usageCSV(parts ...csvPart) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	line := func(cells ...string) {
		for i := range cells {
			cells[i] = harmlessCell(cells[i])
		}
		_ = w.Write(cells) // into memory
	}
	line("kind", "day", "agent", "run", "workflow", "title", "model", "sessions", "input_tokens", "output_tokens", "cost_usd")
	row := func(kind string, r *UsageRow) { // what was not reported is empty, as on the page
		input, output, cost := "", "", ""
		if r.tokens() > 0 {
			input, output = strconv.FormatInt(r.InputTokens, 10), strconv.FormatInt(r.OutputTokens, 10)
		}
		if r.CostUSD > 0 {
			cost = strconv.FormatFloat(r.CostUSD, 'f', 6, 64)
		}
		line(kind, r.Day, r.Agent, r.Run, r.Workflow, r.Title, r.Model, strconv.Itoa(r.Sessions), input, output, cost)
	}
	for _, part := range parts {
		for i := range part.rows {
			row(part.kind, &part.rows[i])
		}
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
