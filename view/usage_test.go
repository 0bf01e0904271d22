package view

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/team"
)

// What is used by the end of the day, if it goes on as today.
func TestBudgets(t *testing.T) {
	day := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	limits := team.Limits{CostPerDayUSD: 50, TokensPerDay: 1000}
	for _, c := range []struct {
		at   time.Duration
		used team.Usage
		want string
	}{
		{6 * time.Hour, team.Usage{Day: "2026-11-25", CostUSD: 10, InputTokens: 90, OutputTokens: 10}, "cost_usd 10/50 40, tokens 100/1000 400"},
		{30 * time.Minute, team.Usage{Day: "2026-11-25", CostUSD: 10}, "cost_usd 10/50 -, tokens 0/1000 -"},
		{6 * time.Hour, team.Usage{Day: "2026-11-24", CostUSD: 10}, "cost_usd 0/50 -, tokens 0/1000 -"},
	} {
		var got []string
		for _, b := range BudgetsOf("", limits, c.used, day.Add(c.at)) {
			forecast := "-"
			if b.Forecast != nil {
				forecast = fmt.Sprintf("%.0f", *b.Forecast)
			}
			got = append(got, fmt.Sprintf("%s %.0f/%.0f %s", b.Measure, b.Used, b.Limit, forecast))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if none := BudgetsOf("a", team.Limits{}, team.Usage{CostUSD: 1}, day); len(none) != 0 {
		t.Errorf("%+v", none)
	}
}

// No cell is a formula, and a reader of CSV gets each text back, with a mark if it could be one.
func FuzzUsageCSV(f *testing.F) {
	f.Add("=HYPERLINK(\"http://evil.example\")", "+1", "-1+1")
	f.Add("@SUM(A1)", "a,b\"c\r\nd", "\t=1")
	f.Fuzz(func(t *testing.T, agent, workflow, title string) {
		text := UsageCSV(UsageTable{Days: []UsageRow{{Agent: agent, Day: "2026-11-25", CostUSD: 0.5}}, Runs: []UsageRow{{Run: "r1", Workflow: workflow, Title: title}}})
		lines, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
		if err != nil || len(lines) != 3 {
			t.Fatalf("%v: %q", err, text)
		}
		for _, line := range lines {
			for _, cell := range line {
				if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
					t.Errorf("a formula: %q", cell)
				}
			}
		}
	})
}
