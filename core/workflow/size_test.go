package workflow

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// carry does all pending actions of a run successfully, and reads the whole list again each time,
// as a driver does. It returns the number of inputs.
func carry(t testing.TB, r *Run, each func([]change.Change)) int {
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
	for name, plan := range map[string]Plan{"chain": chain(listMax + listMax/2), "fan": fan(listMax + listMax/2)} {
		r, now := &Run{}, Now{At: noon}
		do := func(in Input) []change.Change {
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
		carry(t, r, func(changes []change.Change) { largest = max(largest, len(changes)) })
		if r.Status() != IsCompleted || largest != 1 {
			t.Fatalf("%s: the run is %s, and one event had %d changes", name, r.Status(), largest)
		}
		changes := do(ResumeAsked{From: plan.Steps[0].ID})
		if len(changes) != 1+(len(plan.Steps)+listMax-1)/listMax || r.counts()[later] != len(plan.Steps)-1 {
			t.Errorf("%s: a restart of all steps takes %d changes, and %d steps wait", name, len(changes), r.counts()[later])
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
	inputs := carry(t, r, func(changes []change.Change) {
		for _, ch := range changes {
			largest = max(largest, jsonBytes(ch.Body))
		}
	})
	if largest > 600 || inputs != 2*5000+2 || len(r.Steps[0].Artifacts) != 5000 {
		t.Errorf("%d inputs, the largest change %d bytes, %d artifacts", inputs, largest, len(r.Steps[0].Artifacts))
	}
}

// TestReportsHaveLimits checks that no limit of a report fails a step that says COMPLETED: what is within it is kept, and
// the step says what is only in the report. At the limit itself nothing is left out.
func TestReportsHaveLimits(t *testing.T) {
	long := strings.Repeat("x", 2000)
	names := func(n, bytes int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("%0*d", bytes, i))
		}
		return list
	}
	metrics := func(n, bytes int) (list []Metric) {
		for _, name := range names(n, bytes) {
			list = append(list, Metric{name, "1"})
		}
		return list
	}
	for name, c := range map[string]struct {
		reported                 Facts
		artifacts, metrics, logs int // that are kept
		cut                      string
	}{
		"artifacts": {
			reported: Facts{Artifacts: names(1001, 4)}, artifacts: 1000,
			cut: "1 of 1001 artifacts is only in its report: ",
		},
		"artifacts at the limit": {reported: Facts{Artifacts: names(1000, 4)}, artifacts: 1000},
		"many artifacts": {
			reported: Facts{Artifacts: names(5000, 4)}, artifacts: 1000,
			cut: "4000 of 5000 artifacts are only in its report: ",
		},
		"a long path": {
			reported: Facts{Artifacts: []string{"a", long, "b"}}, artifacts: 1,
			cut: "2 of 3 artifacts are only in its report: ",
		},
		"a path at the limit": {reported: Facts{Artifacts: []string{"a", long[:1024], "b"}}, artifacts: 3},
		"no text":             {reported: Facts{Artifacts: []string{"a\xff"}}, cut: "1 of 1 artifacts is only in its report: "},
		"long paths": {
			reported: Facts{Artifacts: names(500, 1000)}, artifacts: 392,
			cut: "108 of 500 artifacts are only in its report: ",
		},
		"metrics": {
			reported: Facts{Metrics: metrics(1001, 4)}, metrics: 1000,
			cut: "1 of 1001 metrics is only in its report: ",
		},
		"metrics at the limit": {reported: Facts{Metrics: metrics(1000, 4)}, metrics: 1000},
		"a long value": {
			reported: Facts{Metrics: []Metric{{"a", long}, {"b", "1"}}}, metrics: 1,
			cut: "1 of 2 metrics is only in its report: ",
		},
		"a value at the limit": {reported: Facts{Metrics: []Metric{{"a", long[:1024]}, {"b", "1"}}}, metrics: 2},
		"a long name": {
			reported: Facts{Metrics: []Metric{{long, "1"}, {"", "1"}, {"b", "1"}}}, metrics: 1,
			cut: "2 of 3 metrics are only in its report: ",
		},
		"artifacts and long metrics": {
			reported: Facts{Artifacts: names(300, 1000), Metrics: metrics(300, 1000)}, artifacts: 300,
			metrics: 90, cut: "210 of 300 metrics are only in its report: ",
		},
		"log lines": {
			reported: Facts{Logs: names(1200, 4)}, logs: 1000,
			cut: "201 of 1200 log lines are only in its report: ",
		},
		"log lines at the limit":  {reported: Facts{Logs: names(999, 4)}, logs: 999},
		"a long log line":         {reported: Facts{Logs: []string{long, "b"}}, logs: 2, cut: "1 of 2 log lines is cut to 1000 bytes"},
		"a log line at the limit": {reported: Facts{Logs: []string{long[:1000], "b"}}, logs: 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := begun(t, chain(1), DefaultOptions(1))
			for _, in := range []Input{
				StartAsked{"step0"},
				ReportRead{Lease: Lease{"step0", 1}, Report: Report{Facts: c.reported}, Over: true},
			} {
				changes, err := decide(t, r, in, Now{At: noon})
				if err != nil {
					t.Fatal(err)
				}
				for _, ch := range changes {
					r.Apply(journaled(t, ch))
				}
			}
			p := r.Steps[0]
			if p.State != Completed || p.LastError != "" {
				t.Fatalf("%s, %q", p.State, p.LastError)
			}
			if got, want := [3]int{len(p.Artifacts), len(p.Metrics), len(p.Logs)}, [3]int{c.artifacts, c.metrics, c.logs}; got != want {
				t.Errorf("kept are %d artifacts, metrics and log lines; want %d", got, want)
			}
			if !slices.Equal(p.Artifacts, c.reported.Artifacts[:min(c.artifacts, len(p.Artifacts))]) {
				t.Error("the artifacts that are kept are not the first ones: their numbers would change")
			}
			if cut := strings.Join(p.Cut, "; "); (cut == "") != (c.cut == "") || !strings.Contains(cut, c.cut) {
				t.Errorf("it says %q, want %q", cut, c.cut)
			}
			if size := jsonBytes(p.Facts); size > factsBytesMax+8<<10 {
				t.Errorf("%d bytes in the journal", size)
			}
		})
	}
}

// TestLoopsHaveLimits checks that the items of a loop together keep to the limit of a step's artifacts, and none fails.
func TestLoopsHaveLimits(t *testing.T) {
	s := work("each")
	s.Loop = &Loop{MaxIterations: itemsMax/artifactsMax + 2, UntilCondition: "false"}
	for range itemsMax/artifactsMax + 2 {
		s.Loop.Items = append(s.Loop.Items, "1")
	}
	r := begun(t, Plan{Name: "p", Steps: []Step{s}}, DefaultOptions(1))
	for n := range uint64(len(s.Loop.Items)) {
		for _, in := range []Input{
			StartAsked{"each"},
			ReportRead{
				Lease: Lease{"each", n + 1}, Report: Report{Facts: Facts{Artifacts: slices.Repeat([]string{"a"}, artifactsMax)}},
				Over: true, Until: &Verdict{},
			},
		} {
			changes, err := decide(t, r, in, Now{At: noon})
			if err != nil {
				t.Fatal(err)
			}
			for _, ch := range changes {
				r.Apply(journaled(t, ch))
			}
		}
	}
	if p := r.Steps[0]; p.State != Completed || len(p.Artifacts) != itemsMax || len(p.Cut) != 1 ||
		!strings.HasPrefix(p.Cut[0], "1000 of 1000 artifacts are only in its report") {
		t.Errorf("%s, %q, %d artifacts, %q", p.State, p.LastError, len(p.Artifacts), p.Cut)
	}
}

// TestLogsAreKeptFromTheEnd checks that the newest lines of a long log are kept, also over the items of a loop.
func TestLogsAreKeptFromTheEnd(t *testing.T) {
	long := strings.Repeat("x", 2000)
	facts := Facts{Logs: slices.Repeat([]string{long + "\xff"}, 3000)}
	facts.Logs[2999] = "the last"
	kept := facts.kept(0)
	if n := len(kept.Logs); n > logsKeptMax || kept.Logs[0] != logsCut || kept.Logs[n-1] != "the last" ||
		len(kept.Logs[1]) > lineKeptMax+3 || jsonBytes(kept) > factsBytesMax {
		t.Errorf("%d lines are kept, from %q", n, kept.Logs[0])
	}
	sum := Facts{}
	for n := range 3 {
		sum = sum.plus(Facts{
			Logs:    slices.Repeat([]string{fmt.Sprint(n)}, 600),
			Metrics: []Metric{{"n", fmt.Sprint(n)}, {fmt.Sprint(n), "x"}},
		})
	}
	if len(sum.Logs) != logsKeptMax || sum.Logs[0] != logsCut || sum.Logs[999] != "2" || len(sum.Metrics) != 4 ||
		sum.Metrics[0].Value != "2" {
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
		for _, in := range []Input{
			StartAsked{"each"},
			ReportRead{Lease: Lease{"each", uint64(n + 1)}, Report: Report{Facts: Facts{Artifacts: artifacts}}, Over: true},
		} {
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
