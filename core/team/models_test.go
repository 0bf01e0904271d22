package team

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/change"
)

// The parts of a report, and the sums of many, never exceed their total, whatever is reported.
func TestPartsAddUp(t *testing.T) {
	for seed := range uint64(300) {
		dice := rand.New(rand.NewPCG(seed, 9))
		names := []string{"opus", "sonnet", "", "haiku\x1b[2J", strings.Repeat("x", 300)}
		for n := range dice.IntN(30) {
			names = append(names, strings.Repeat("m", n+1))
		}
		number := func() int64 { return []int64{0, 1, 7, 1200, -5, math.MaxInt64, math.MinInt64}[dice.IntN(7)] }
		price := func() float64 {
			return []float64{0, 0.004, 0.1, 3, -1, math.NaN(), math.Inf(1)}[dice.IntN(7)]
		}
		total := change.Usage{}
		var sums []DayUsage
		for range 60 {
			of := change.Usage{
				InputTokens: int64(dice.IntN(5000)), OutputTokens: int64(dice.IntN(900)), CostUSD: float64(dice.IntN(100)) / 8,
			}
			var parts []DayUsage
			for range dice.IntN(6) {
				part := change.Usage{InputTokens: number(), OutputTokens: number(), CostUSD: price()}
				part.Model = names[dice.IntN(len(names))]
				parts = append(parts, DayUsage{Usage: part})
			}
			within := ModelsWithin(parts, of)
			if exceeds(sumOfModels(t, within), of, 1e-9) {
				t.Fatalf("seed %d: parts %+v of %+v", seed, within, of)
			}
			before := append([]DayUsage(nil), sums...)
			next := AddModels(sums, within, "2026-11-25", "2026-11-01")
			for i := range before {
				if sums[i] != before[i] {
					t.Fatalf("seed %d: AddModels changed the list that it was given", seed)
				}
			}
			sums = next
			total = total.Plus(of)
		}
		if s := sumOfModels(t, sums); exceeds(s, total, 1e-6) {
			t.Fatalf("seed %d: sums %+v of %+v", seed, s, total)
		}
		if len(sums) > modelsPerDay {
			t.Fatalf("seed %d: %d models of one day", seed, len(sums))
		}
	}
}

// exceeds reports whether a sum is more than its total; noise is that of adding prices.
func exceeds(sum, total change.Usage, noise float64) bool {
	return sum.InputTokens > total.InputTokens || sum.OutputTokens > total.OutputTokens || sum.CostUSD > total.CostUSD+noise
}

func sumOfModels(t *testing.T, all []DayUsage) (s change.Usage) {
	t.Helper()
	seen := map[string]bool{}
	for _, u := range all {
		if u.Model == "" || u.Model != modelName(u.Model) || u.InputTokens < 0 || u.OutputTokens < 0 || !(u.CostUSD >= 0) || seen[u.Model] {
			t.Fatalf("%+v", u)
		}
		seen[u.Model] = true
		s = s.Plus(u.Usage)
	}
	return s
}

// More models than are told apart are summed up, and nothing of them is lost.
func TestOtherModels(t *testing.T) {
	var sums []DayUsage
	for n := range 40 {
		sums = AddModels(sums, []DayUsage{{Usage: change.Usage{Model: strings.Repeat("m", n+1), InputTokens: 1}}}, "2026-11-25", "")
	}
	if last := sums[len(sums)-1]; len(sums) != modelsPerDay || last.Model != otherModels || last.InputTokens != 40-modelsPerDay+1 {
		t.Errorf("%d models, the last %+v", len(sums), last)
	}
	if old := AddModels(sums, []DayUsage{{Usage: change.Usage{Model: "m", InputTokens: 1}}}, "2026-12-26", "2026-11-26"); len(old) != 1 {
		t.Errorf("days before the first are kept: %+v", old)
	}
}

func FuzzModelName(f *testing.F) {
	f.Add("claude-opus-4-8[1m]")
	f.Add(strings.Repeat("m", modelNameBytesMax-1) + " cut after a space")
	f.Add("\x1b]0;x\x07 \xff\xfe")
	f.Fuzz(func(t *testing.T, of string) {
		name := modelName(of)
		if len(name) > modelNameBytesMax || strings.ToValidUTF8(name, "") != name || modelName(name) != name {
			t.Errorf("%q from %q", name, of)
		}
	})
}
