package runstate

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/workflow"
)

// The built-in workflow of tasks is valid with and without a reviewer.
func TestTaskWorkflow(t *testing.T) {
	for _, reviewer := range []string{"", "critic"} {
		text, err := FillTask(TaskWorkflow(),
			TaskBlanks{Agent: "coder", Prompt: `/a "b"/task.md`, Reviewer: reviewer, Review: "/r/review.md"})
		if err != nil {
			t.Fatal(err)
		}
		read, err := ParseWorkflow("task.yaml", []byte(text), nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		var ids []string
		var approve workflow.Step
		for _, s := range read.Plan.Steps {
			ids = append(ids, string(s.ID))
			if s.ID == "approve" {
				approve = s
			}
		}
		want, needs := "prepare work check approve land", []workflow.StepID{"check"}
		if reviewer != "" {
			want, needs = "prepare work check review approve land", []workflow.StepID{"check", "review"}
		}
		if strings.Join(ids, " ") != want || !slices.Equal(approve.Needs, needs) {
			t.Errorf("%q, approve needs %q", ids, approve.Needs)
		}
	}
	made, err := FillTask(TaskWorkflow(), TaskBlanks{Agent: "coder", Prompt: "/task.md", Made: true})
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseWorkflow("task.yaml", []byte(made), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, made)
	}
	if work, check := read.Plan.Steps[1], read.Plan.Steps[2]; work.When == "" || !slices.Equal(check.Needs, []workflow.StepID{"prepare", "work"}) {
		t.Errorf("what is made already: work when %q, check needs %q", work.When, check.Needs)
	}
	if _, err := FillTask("steps: [{id: look, agent: '{reviewer}'}]", TaskBlanks{}); err == nil ||
		!strings.Contains(err.Error(), "tasks.reviewer") {
		t.Errorf("%v", err)
	}
}
