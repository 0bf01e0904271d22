package view

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/team"
)

// What is used by the end of the day, if it goes on as today.
func TestBudgets(t *testing.T) {
	day := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	limits := team.Limits{CostPerDayUSD: 50, TokensPerDay: 1000}
	for _, c := range []struct {
		at   time.Duration
		used team.DayUsage
		want string
	}{
		{
			6 * time.Hour,
			team.DayUsage{Day: "2026-11-25", Usage: change.Usage{CostUSD: 10, InputTokens: 90, OutputTokens: 10}},
			"cost_usd 10/50 40, tokens 100/1000 400",
		},
		{30 * time.Minute, team.DayUsage{Day: "2026-11-25", Usage: change.Usage{CostUSD: 10}}, "cost_usd 10/50 -, tokens 0/1000 -"},
		{6 * time.Hour, team.DayUsage{Day: "2026-11-24", Usage: change.Usage{CostUSD: 10}}, "cost_usd 0/50 -, tokens 0/1000 -"},
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
	if none := BudgetsOf("a", team.Limits{}, team.DayUsage{Usage: change.Usage{CostUSD: 1}}, day); len(none) != 0 {
		t.Errorf("%+v", none)
	}
}

// No cell is a formula, and a reader of CSV gets each text back, with a mark if it could be one.
func FuzzUsageCSV(f *testing.F) {
	f.Add("=HYPERLINK(\"http://evil.example\")", "+1", "-1+1")
	f.Add("@SUM(A1)", "a,b\"c\r\nd", "\t=1")
	f.Fuzz(func(t *testing.T, agent, workflow, title string) {
		text := UsageCSV(UsageTable{
			Days: []UsageRow{{Agent: agent, Day: "2026-11-25", CostUSD: 0.5}},
			Runs: []UsageRow{{Run: "r1", Workflow: workflow, Title: title}},
		})
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

// The rows by day, agent and model have the same total, whatever was reported, and models without a name come last.
func TestUsageAddsUp(t *testing.T) {
	for seed := range uint64(200) {
		dice := rand.New(rand.NewPCG(seed, 5))
		var table UsageTable
		var by ByModel
		for _, agent := range []string{"a", "b", "c"}[:1+dice.IntN(3)] {
			var days []team.DayUsage
			var parts []team.DayUsage
			for d := range 1 + dice.IntN(4) {
				day := fmt.Sprintf("2026-11-%02d", 25-d)
				for range dice.IntN(5) {
					of := team.DayUsage{Day: day, Usage: change.Usage{
						InputTokens: int64(dice.IntN(900)), OutputTokens: int64(dice.IntN(90)),
						CostUSD: float64(dice.IntN(1000)) / 7,
					}}
					days = append(days, of)
					said := []team.DayUsage{{Usage: change.Usage{
						Model: []string{"opus", "haiku", ""}[dice.IntN(3)], InputTokens: int64(dice.IntN(900)),
						OutputTokens: 5, CostUSD: float64(dice.IntN(99)) / 3,
					}}}
					parts = team.AddModels(parts,
						team.ModelsWithin(said, of.Usage),
						day, "")
					row := UsageRow{Day: day, Agent: agent}
					row.Add(of.Usage)
					table.Days = append(table.Days, row)
				}
			}
			sum := UsageRow{Agent: agent}
			for _, d := range days {
				sum.Add(d.Usage)
			}
			table.Agents = append(table.Agents, sum)
			by.Add(days, parts)
		}
		slices.SortStableFunc(table.Days, func(a, b UsageRow) int { return strings.Compare(b.Day, a.Day) })
		table.Models = by.Rows()
		want := table.By("agent").Total
		for _, what := range []string{"day", "model"} {
			got := table.By(what).Total
			if got.InputTokens != want.InputTokens || got.OutputTokens != want.OutputTokens || math.Abs(got.CostUSD-want.CostUSD) > 1e-5 {
				t.Fatalf("seed %d: by %s %+v, by agent %+v", seed, what, got, want)
			}
		}
		for i, r := range table.Models {
			if r.Model == "" && i < len(table.Models)-1 {
				t.Fatalf("seed %d: %+v", seed, table.Models)
			}
		}
		days := table.By("day").Rows
		if !slices.IsSortedFunc(days, func(a, b UsageRow) int { return strings.Compare(b.Day, a.Day) }) || len(days) > 4 {
			t.Fatalf("seed %d: days %+v", seed, days)
		}
	}
}
