package workflow

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// carry does all pending actions of a run successfully, and reads the whole list again each time,
// as a driver does. It returns the number of inputs.
func carry(t testing.TB, r *Run, each func([]Change)) int {
	t.Helper()
	now, inputs := Now{At: noon}, 0
	do := func(in Input) {
		changes, err := r.Decide(in, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range changes {
			r.Apply(ch)
		}
		each(changes)
		inputs++
	}
	for {
		now.At = now.At.Add(time.Millisecond)
		var action Action
		for action = range r.Actions(now) {
			break
		}
		switch action.Do {
		case StartIt:
			do(StartAsked{Step: action.Lease.Step})
		case RunIt:
			do(ReportRead{Lease: action.Lease, Over: true, Report: Report{Facts: Facts{Artifacts: []string{"out.md"}}}})
		case SkipIt:
			do(SkipsDue{})
		case "":
			return inputs
		default:
			t.Fatalf("unexpected action %+v", action)
		}
		if r.Status() == IsFailed {
			t.Fatal("it failed")
		}
		_ = r.Deadline()
	}
}

// TestChangesFitTheJournal checks a large run: no change is larger than 1 MiB, no batch has more
// than 1,000 changes, and most events change one or two steps.
func TestChangesFitTheJournal(t *testing.T) {
	for name, plan := range map[string]Plan{"chain": chain(10_000), "fan": fan(10_000)} {
		r, now := &Run{}, Now{At: noon}
		do := func(in Input) []Change {
			changes, err := decide(t, r, in, now)
			if err != nil {
				t.Fatal(err)
			}
			for _, ch := range changes {
				r.Apply(journaled(t, ch))
			}
			return changes
		}
		do(RunAsked{ID: "r", Plan: plan, Options: DefaultOptions(8), ReportsDir: "/r"})
		largest := 0
		carry(t, r, func(changes []Change) { largest = max(largest, len(changes)) })
		if r.Status() != IsCompleted || largest != 1 {
			t.Fatalf("%s: the run is %s, and one event had %d changes", name, r.Status(), largest)
		}
		changes := do(ResumeAsked{From: plan.Steps[0].ID})
		if len(changes) != 1+(len(plan.Steps)+listMax-1)/listMax || r.index.in[later].n != len(plan.Steps)-1 {
			t.Errorf("%s: a restart of all steps takes %d changes, and %d steps wait", name, len(changes), r.index.in[later].n)
		}
	}
}

// TestChangesAreSmall checks that the change of a step is small, regardless of the steps that
// depend on it and of the length of its loop.
func TestChangesAreSmall(t *testing.T) {
	s := work("each")
	s.Loop = &Loop{ItemsFromArtifact: "items.json"}
	r := begun(t, Plan{Name: "w", Steps: []Step{s, work("end", "each")}}, DefaultOptions(1))
	changes, err := decide(t, r, ItemsSeen{Step: "each", Items: slices.Repeat([]string{`"an item of a loop"`}, 5000)}, Now{At: noon})
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range changes {
		r.Apply(journaled(t, ch))
	}
	largest := 0
	inputs := carry(t, r, func(changes []Change) {
		for _, ch := range changes {
			largest = max(largest, jsonBytes(ch.Body))
		}
	})
	if largest > 600 || inputs != 2*5000+2 || len(r.Steps[0].Artifacts) != 5000 {
		t.Errorf("%d inputs, the largest change %d bytes, %d artifacts", inputs, largest, len(r.Steps[0].Artifacts))
	}
}

// TestReportsHaveLimits checks that a report over a limit is refused with the limit, and that the
// newest lines of a long log are kept.
func TestReportsHaveLimits(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for want, facts := range map[string]Facts{
		"1001 artifacts, 1000 at most":  {Artifacts: slices.Repeat([]string{"a"}, 1001)},
		"is no artifact":                {Artifacts: []string{long}},
		"\"a\uFFFD\" is no artifact":    {Artifacts: []string{"a\xff"}},
		"1001 metrics, 1000 at most":    {Metrics: slices.Repeat([]Metric{{"n", "1"}}, 1001)},
		`metric "": names have 1`:       {Metrics: []Metric{{"", "1"}}},
		"artifacts and metrics take":    {Artifacts: slices.Repeat([]string{long[:1000]}, 500)},
		`metric "n": names have 1 to 1`: {Metrics: []Metric{{"n", long}}},
	} {
		r := begun(t, chain(1), DefaultOptions(1))
		for _, in := range []Input{StartAsked{"step0"}, ReportRead{Lease: Lease{"step0", 1}, Report: Report{Facts: facts}, Over: true}} {
			changes, err := decide(t, r, in, Now{At: noon})
			if err != nil {
				t.Fatal(err)
			}
			for _, ch := range changes {
				r.Apply(journaled(t, ch))
			}
		}
		if p := r.Steps[0]; p.State != Pending || !strings.HasPrefix(p.LastError, "report refused: ") || !strings.Contains(p.LastError, want) {
			t.Errorf("%q: %s, %q", want, p.State, p.LastError)
		}
	}
	facts := Facts{Logs: slices.Repeat([]string{long + "\xff"}, 3000)}
	facts.Logs[2999] = "the last"
	kept := facts.kept()
	if n := len(kept.Logs); n > logsKeptMax || kept.Logs[0] != logsCut || kept.Logs[n-1] != "the last" || len(kept.Logs[1]) > lineKeptMax+3 || jsonBytes(kept) > factsBytesMax {
		t.Errorf("%d lines are kept, from %q", n, kept.Logs[0])
	}
	sum := Facts{}
	for n := range 3 {
		sum = sum.plus(Facts{Logs: slices.Repeat([]string{fmt.Sprint(n)}, 600), Metrics: []Metric{{"n", fmt.Sprint(n)}, {fmt.Sprint(n), "x"}}})
	}
	if len(sum.Logs) != logsKeptMax || sum.Logs[0] != logsCut || sum.Logs[999] != "2" || len(sum.Metrics) != 4 || sum.Metrics[0].Value != "2" {
		t.Errorf("%d lines, %v", len(sum.Logs), sum.Metrics)
	}
}

// TestFactsAreNotShared checks that the report of the next item does not overwrite the facts of a
// report.
func TestFactsAreNotShared(t *testing.T) {
	s := work("each")
	s.Loop = &Loop{Items: []string{"1", "2"}}
	r := begun(t, Plan{Name: "w", Steps: []Step{s}}, DefaultOptions(1))
	theirs := []string{"first.md", "kept.md"}
	for n, artifacts := range [][]string{theirs[:1], {"second.md"}} {
		for _, in := range []Input{StartAsked{"each"}, ReportRead{Lease: Lease{"each", uint64(n + 1)}, Report: Report{Facts: Facts{Artifacts: artifacts}}, Over: true}} {
			changes, err := decide(t, r, in, Now{At: noon})
			if err != nil {
				t.Fatal(err)
			}
			for _, ch := range changes {
				r.Apply(ch)
			}
		}
	}
	if theirs[1] != "kept.md" || !slices.Equal(r.Steps[0].Artifacts, []string{"first.md", "second.md"}) {
		t.Errorf("%v, %v", theirs, r.Steps[0].Artifacts)
	}
}

// BenchmarkRun checks that the cost of a run is proportional to its steps, in a chain and in a fan.
// It reports nanoseconds per step for two sizes, and the ratio.
func BenchmarkRun(b *testing.B) {
	for _, shape := range []struct {
		name string
		plan func(int) Plan
	}{{"chain", chain}, {"fan", fan}} {
		b.Run(shape.name, func(b *testing.B) {
			var spent [2]time.Duration
			for b.Loop() {
				for n, size := range []int{1000, 10_000} {
					plan := shape.plan(size)
					began := time.Now()
					r := begun(b, plan, DefaultOptions(8))
					carry(b, r, func([]Change) {})
					spent[n] += time.Since(began)
				}
			}
			small := float64(spent[0].Nanoseconds()) / 1000 / float64(b.N)
			large := float64(spent[1].Nanoseconds()) / 10_000 / float64(b.N)
			b.ReportMetric(small, "ns/step-of-1000")
			b.ReportMetric(large, "ns/step-of-10000")
			b.ReportMetric(large/small, "times-as-long")
		})
	}
}

// BenchmarkLoopBack sends a run of 10,000 steps back to its first one.
func BenchmarkLoopBack(b *testing.B) {
	plan := fan(10_000)
	plan.Steps[len(plan.Steps)-1].LoopBackTo = "first"
	options := DefaultOptions(8)
	options.MaxIterations = iterationsMax
	r := begun(b, plan, options)
	gate := r.index.at["last"]
	for b.Loop() {
		v := r.Steps[gate].Value
		v.State, v.N, v.Iteration = Running, v.N+1, 0
		r.set(gate, v)
		changes, err := r.Decide(ReportRead{Lease: Lease{"last", v.N}, Over: true, Report: Report{GateFailed: true, Why: "no"}}, Now{At: noon})
		if err != nil {
			b.Fatal(err)
		}
		for _, ch := range changes {
			r.Apply(ch)
		}
	}
}
