package runstate

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var reviewOf = ReportFor{RunID: "T1", StepID: "review"}

func TestParseReview(t *testing.T) {
	whole := `{"schema": "run_report@v0", "run_id": "T1", "step_id": "review", "agent": "critic", "status": %q, "started_at": "1", "ended_at": "2", "logs": ["no tools"]%s}`
	long := strings.Repeat("x", findingBytesMax+1)
	many := strings.TrimSuffix(strings.Repeat(`{"id": "F1", "text": "x"},`, findingsMax+1), ",")
	for _, c := range []struct {
		text  string
		want  []Finding
		fault string
	}{
		{`{"findings": []}`, []Finding{}, ""},
		{
			`{"findings": [{"id": "F1", "file": "upload.go", "line": 40, "text": " no retry ", "severity": "should", "why": 1}], "resolved": ["F0"]}`,
			[]Finding{{"F1", "upload.go", 40, "no retry", Should}},
			"",
		},
		{
			`{"findings": [{"id": "F1", "text": "x", "file": null, "line": null}], "resolved": null}`,
			[]Finding{{"F1", "", 0, "x", Must}},
			"",
		},
		{fmt.Sprintf(whole, "COMPLETED", `, "findings": [{"id": "F1", "text": "x"}]`), []Finding{{"F1", "", 0, "x", Must}}, ""},
		{fmt.Sprintf(whole, "FAILED", ""), nil, ""},
		{fmt.Sprintf(whole, "COMPLETED", ""), nil, "findings is missing"},
		{`{}`, nil, "findings is missing"},
		{`[]`, nil, "object"},
		{`{"findings": {}}`, nil, "is no list"},
		{`{"findings": [1]}`, nil, "object"},
		{`{"findings": [{"text": "x"}]}`, nil, "no valid id"},
		{`{"findings": [{"id": "a b", "text": "x"}]}`, nil, "no valid id"},
		{`{"findings": [{"id": "F1"}]}`, nil, "needs a text"},
		{`{"findings": [{"id": "F1", "text": "` + long + `"}]}`, nil, "needs a text"},
		{`{"findings": [{"id": "F1", "text": "x", "file": "../a"}]}`, nil, "no file of the repository"},
		{`{"findings": [{"id": "F1", "text": "x", "file": "/etc/passwd"}]}`, nil, "no file of the repository"},
		{`{"findings": [{"id": "F1", "text": "x", "line": -1}]}`, nil, "no whole number"},
		{`{"findings": [{"id": "F1", "text": "x", "severity": "high"}]}`, nil, "must or should"},
		{`{"findings": [{"id": "F1", "text": "x"}, {"id": "F1", "text": "y"}]}`, nil, "as another one"},
		{`{"findings": [{"id": "F1", "text": "x"}], "resolved": ["F1"]}`, nil, "both open and resolved"},
		{`{"findings": [], "resolved": ["F1", "F1"]}`, nil, "twice"},
		{`{"findings": [], "resolved": "F1"}`, nil, "is no list"},
		{`{"findings": [` + many + `]}`, nil, "100 at most"},
		{`{"findings": [], "run_id": "T2"}`, nil, "missing"},
	} {
		a, err := ParseReview("answer", []byte(c.text), reviewOf)
		switch {
		case c.fault != "":
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%.100s: %v, want %q", c.text, err, c.fault)
			}
		case err != nil:
			t.Errorf("%.100s: %v", c.text, err)
		default:
			if diff := cmp.Diff(c.want, a.Findings); diff != "" {
				t.Errorf("%.100s: -want +got\n%s", c.text, diff)
			}
		}
	}
	if _, err := ReadReview(filepath.Join(t.TempDir(), "none"), reviewOf); err == nil {
		t.Error("a file that does not exist is an answer")
	}
}

// FuzzParseReview checks that any bytes give findings within the limits, or a fault.
func FuzzParseReview(f *testing.F) {
	f.Add([]byte(`{"findings": [{"id": "F1", "file": "a", "line": 1, "text": "x", "severity": "must"}], "resolved": ["F2"]}`))
	f.Add([]byte(`{"findings": [null], "schema": "x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := ParseReview("answer", b, reviewOf)
		if err != nil {
			if len(a.Findings) > 0 {
				t.Error("a fault, and findings")
			}
			return
		}
		ids := map[string]bool{}
		for _, one := range a.Findings {
			if one.fault() != "" || ids[one.ID] {
				t.Errorf("%+v: %s", one, one.fault())
			}
			ids[one.ID] = true
		}
		state, err := Review{Open: []Finding{{ID: "F2", Text: "x", Severity: Must}}}.Take("s", a)
		if err == nil && (state.Stagnant && state.SendsBack() || len(state.Open) > findingsOpenMax) {
			t.Errorf("%+v", state)
		}
	})
}

// Rounds of a review: open findings send the task back until none is left, or nothing moves any more.
func TestReviewConverges(t *testing.T) {
	find := func(ids ...string) (all []Finding) {
		for _, id := range ids {
			severity := Must
			if strings.HasPrefix(id, "S") {
				severity = Should
			}
			all = append(all, Finding{ID: id, Text: id, Severity: severity})
		}
		return all
	}
	type round struct {
		found    string
		resolved string
		sends    bool
		stagnant bool
		open     int
	}
	for name, rounds := range map[string][]round{
		"nothing":                      {{"", "", false, false, 0}},
		"only suggestions":             {{"S1", "", false, false, 1}},
		"resolved one after the other": {{"F1 F2", "", true, false, 2}, {"", "F1", true, false, 1}, {"", "F2", false, false, 0}},
		"many rounds with progress": {
			{"F1", "", true, false, 1},
			{"F2", "F1", true, false, 1},
			{"F3", "F2", true, false, 1},
			{"F4", "F3", true, false, 1},
			{"", "F4", false, false, 0},
		},
		"stagnation": {
			{"F1", "", true, false, 1},
			{"", "", true, false, 1},
			{"F2", "", false, true, 2},
			{"", "F1", true, false, 1},
			{"", "F2", false, false, 0},
		},
		"progress after one idle round": {
			{"F1 F2", "", true, false, 2},
			{"", "", true, false, 2},
			{"", "F1", true, false, 1},
			{"", "", true, false, 1},
			{"", "", false, true, 1},
		},
		"a suggestion is no progress": {{"F1 S1", "", true, false, 2}, {"", "S1", true, false, 1}, {"F1", "", false, true, 1}},
	} {
		var r Review
		for i, step := range rounds {
			var err error
			if r, err = r.Take(fmt.Sprint(i),
				ReviewAnswer{Findings: find(strings.Fields(step.found)...), Resolved: strings.Fields(step.resolved)}); err != nil {
				t.Fatalf("%s, round %d: %v", name, i+1, err)
			}
			if r.SendsBack() != step.sends || r.Stagnant != step.stagnant || len(r.Open) != step.open {
				t.Errorf("%s, round %d: %+v", name, i+1, r)
			}
			again, err := r.Take(fmt.Sprint(i), ReviewAnswer{Findings: find("F9")})
			if diff := cmp.Diff(r, again); diff != "" || err != nil {
				t.Errorf("%s, round %d: the same session counts twice: %v\n%s", name, i+1, err, diff)
			}
			path := filepath.Join(t.TempDir(), "findings.json")
			if err := r.Save(path); err != nil {
				t.Fatal(err)
			}
			if back, err := LoadReview(path); err != nil || !cmp.Equal(back.Open, r.Open) && len(r.Open) > 0 {
				t.Errorf("%v: %+v", err, back)
			}
		}
	}
	var r Review
	for i := range reviewRoundsMax {
		answer := ReviewAnswer{Findings: find(fmt.Sprint("F", i))}
		if i > 0 {
			answer.Resolved = []string{fmt.Sprint("F", i-1)}
		}
		var err error
		if r, err = r.Take(fmt.Sprint(i), answer); err != nil || r.Stagnant != (i == reviewRoundsMax-1) {
			t.Errorf("round %d: %v, %+v", i+1, err, r)
		}
	}
	if _, err := r.Take("x", ReviewAnswer{Resolved: []string{"F99"}}); err == nil {
		t.Error("a finding that is not open is resolved")
	}
	if words := r.Words(); !strings.Contains(words, "F14 (must) F14") {
		t.Error(words)
	}
	if lines := r.Lines(); !strings.Contains(lines[0], "stagnation after 15 rounds") || len(lines) != 2 {
		t.Errorf("%q", lines)
	}
}
