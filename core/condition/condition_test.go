package condition

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func known(id string) bool {
	return id == "plan" || id == "code_review" || id == "code.review" || id == "tests"
}

func world() World {
	steps := map[string]Step{
		"plan": {Status: "COMPLETED", Attempts: 1, Artifacts: []string{"PLAN.md", "tasks.yaml"}},
		"code_review": {
			Status: "COMPLETED", Iteration: 2, Attempts: 1,
			Metrics: map[string]string{"issues_found": "3", "severity": "medium", "clean": "false", "limit": "3.0"},
		},
		"code.review": {Status: "SKIPPED"},
		"tests":       {Status: "FAILED", Metrics: map[string]string{"coverage": "87.5"}},
	}
	return World{
		Steps:  func(id string) (Step, bool) { s, ok := steps[id]; return s, ok },
		Report: Report{Status: "COMPLETED", Artifacts: []string{"a.go"}, Metrics: map[string]string{"coverage": "80"}},
		Item:   `{"name":"auth","files":["a.go","b.go"],"n":7}`, Index: 2,
	}
}

func TestConditionsHold(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		text string
		want bool
	}{
		{When, `steps.plan.status == "COMPLETED"`, true},
		{When, `steps["code.review"].status == "COMPLETED"`, false},
		{When, `steps.code_review.iteration >= 2 and steps.plan.attempts == 1`, true},
		{When, `steps.code_review.metrics.issues_found > 0`, true},
		{When, `steps.code_review.metrics.issues_found > 2.5`, true},
		{When, `3 == steps.code_review.metrics.issues_found`, true},
		{When, `10 > steps.code_review.metrics.issues_found`, true}, // as texts it would not hold
		{When, `steps.code_review.metrics.issues_found == "3"`, true},
		{When, `steps.code_review.metrics.severity != "high"`, true},
		{When, `steps.code_review.metrics.clean == false`, true},
		{When, `steps.code_review.metrics.issues_found == steps.code_review.metrics.limit`, true},
		{When, `steps.tests.metrics.coverage > steps.code_review.metrics.limit`, true},
		{When, `"coverage" in steps.plan.metrics and steps.plan.metrics.coverage > 1`, false},
		{When, `"PLAN.md" in steps.plan.artifacts`, true},
		{When, `any(steps.plan.artifacts, # endsWith ".yaml")`, true},
		{When, `len(steps.plan.artifacts) == 2 && not (steps.tests.status in ["COMPLETED", "SKIPPED"])`, true},
		{When, `text(steps.code_review.metrics.severity) matches "^med"`, true},
		{When, `number(steps.tests.metrics.coverage) + 10 > 97`, true},
		{When, `steps.tests.status == "FAILED" ? steps.plan.attempts > 3 : true`, false},
		{Until, `report.metrics.coverage >= 80 or index >= 5`, true},
		{Until, `report.status == "COMPLETED" and not report.gate_failure and report.why == ""`, true},
		{Until, `item.name == "auth" and item.n == 7 and index == 2`, true},
		{Until, `any(item.files, # in report.artifacts)`, true},
		{Until, `report.metrics.coverage > item.n`, true},
	} {
		condition, err := Check(c.text, c.kind, known)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got, err := condition.Eval(world()); err != nil || got != c.want {
			t.Errorf("%s: got %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

// What is wrong is found while the condition is read, with its column.
func TestFaultsOfConditions(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		text string
		want string
	}{
		{When, ` `, "column 1: is empty"},
		{When, `steps.plam.status == "COMPLETED"`, `column 7: no step is called "plam"`},
		{When, `steps["code-review"].status == "x"`, `column 7: no step is called "code-review"`},
		{When, `steps.plan.stauts == "COMPLETED"`, "column 12: a step has no field stauts; it has status, "},
		{When, `steps.plan.status = "COMPLETED"`, "column 19: "},
		{When, `steps.plan.status ==`, "column 20: "},
		{When, `plan.status == "COMPLETED"`, `column 1: "plan" means nothing; a condition begins with steps; steps.plan is meant?`},
		{
			When, `report.status == "COMPLETED"`,
			`column 1: "report" means nothing; a condition begins with steps; that is for until_condition alone`,
		},
		{When, `true and index > 1`, "column 10: "},
		{When, `len(steps) > 1`, "column 5: steps as a whole"},
		{When, "true and\n  steps[\"pl\" + \"an\"].attempts > 1", "line 2, column "},
		{When, `steps.plan.attempts`, "column "},
		{When, `steps.plan.status > 3`, "column 19: "},
		{When, `steps.code_review.metrics.issues_found + 1 > 3`, "column 40: "},
		{When, `steps.code_review.metrics.severity > "high"`, "column 36: > puts numbers in order"},
		{When, `steps.code_review.metrics.severity in ["high"]`, "column "},
		{When, `steps.code_review.metrics.severity contains "h"`, "column "},
		{When, `all(1..1000000, # > 0)`, "column 6: a range"},
		{When, `any(steps.plan.artifacts, any(steps.tests.artifacts, true))`, "column 27: any within another one"},
		{When, `repeat("x", 1000) == ""`, "column 1: there is no repeat in conditions"},
		{When, `now() == 1`, "column 1: there is no now in conditions"},
		{When, `exec("rm")`, "column 1: there is no such function"},
		{When, `let x = true; x`, "column 5: a condition is one expression"},
		{When, strings.Repeat("x", textBytesMax+1), "column 1: 16385 bytes, 16384 at most"},
		{When, "true and \xff", "column 1: is no UTF-8"},
		{When, strings.Repeat("(", 900) + "true" + strings.Repeat(")", 900), ""},
		{When, "true" + strings.Repeat(" and true", 900), "is too long from here on"},
		{Until, `report.metrcs.x == 1`, "column 8: "},
		{Until, `itm == 1`, `column 1: "itm" means nothing; a condition begins with steps, report, item, index`},
	} {
		_, err := Check(c.text, c.kind, known)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%.60s: %v", c.text, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%.60s: got %v, want %s", c.text, err, c.want)
		}
	}
}

// A condition that cannot be weighed is a fault, and never false.
func TestFaultsOfWeighing(t *testing.T) {
	big := world()
	big.Item = `"` + strings.Repeat("x", itemBytesMax) + `"`
	many := world()
	many.Report.Artifacts = make([]string, listMax+1)
	for _, c := range []struct {
		w    World
		text string
		want string
	}{
		{world(), `steps.tests.metrics.covrage > 80`, "no report gave this metric"},
		{world(), `steps.tests.metrics.covrage == "80"`, "no report gave this metric"},
		{world(), `steps.code_review.metrics.severity > 3`, `the metric severity is "medium", which is no number`},
		{world(), `steps.code_review.metrics.severity == true`, "neither true nor false"},
		{world(), `item.name.x.y == 1`, "column "},
		{world(), `item.name > 1`, "column "},
		{world(), `item.name`, "column "},
		{world(), `report.metrics.coverage > item.files`, "a metric is compared with"},
		{big, `item == 1`, "the item has 16386 bytes, 16384 at most"},
		{many, `len(report.artifacts) > 0`, "10001 artifacts"},
		{World{}, `steps.plan.attempts > 0`, `no step is called "plan"`},
		{World{Item: "{"}, `item == 1`, "the item is no JSON"},
	} {
		c2, err := Check(c.text, Until, nil)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		holds, err := c2.Eval(c.w)
		if err == nil || holds || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v; want %s", c.text, holds, err, c.want)
		}
	}
}

func TestStepsOfACondition(t *testing.T) {
	c, err := Check(`steps.tests.attempts > 1 or steps["code.review"].attempts > 1 or steps.tests.status == ""`, When, known)
	if err != nil || fmt.Sprint(c.steps) != "[code.review tests]" {
		t.Fatalf("got %v, %v", c, err)
	}
}

// faultIn is what every error here is.
func faultIn(t *testing.T, err error) *Fault {
	t.Helper()
	var fault *Fault
	if !errors.As(err, &fault) {
		t.Fatalf("no fault: %v", err)
	}
	return fault
}

func FuzzCondition(f *testing.F) {
	for _, s := range []string{
		`steps.plan.status == "COMPLETED"`, `any(item.files, # in report.artifacts) and index < 3`,
		`"x" in steps.plan.metrics ? not true : 1 < 2.5`,
		`steps["code.review"]?.metrics?.x ?? 1 == 2`, `item[0:2] == [1,2] or {"a": 1}.a == 1 | abs()`, `filter(item.files, .x)[#]`,
	} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, text, item string) {
		c, err := Check(text, Until, known)
		if err != nil {
			if fault := faultIn(t, err); fault.Line < 1 || fault.Column < 1 || fault.Text == "" {
				t.Fatalf("a fault without a place: %#v", fault)
			}
			return
		}
		w := world()
		w.Item = item
		if _, err := c.Eval(w); err != nil {
			if fault := faultIn(t, err); fault.Line < 1 || fault.Column < 1 || fault.Text == "" {
				t.Fatalf("a fault without a place: %#v", fault)
			}
		}
	})
}

// BenchmarkCondition is what a condition costs to read through, and to weigh.
func BenchmarkCondition(b *testing.B) {
	const text = `steps.code_review.metrics.issues_found > 2 and "PLAN.md" in steps.plan.artifacts`
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			if _, err := Check(text, When, known); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("eval", func(b *testing.B) {
		c, err := Check(text, When, known)
		if err != nil {
			b.Fatal(err)
		}
		w := world()
		for b.Loop() {
			if _, err := c.Eval(w); err != nil {
				b.Fatal(err)
			}
		}
	})
}
