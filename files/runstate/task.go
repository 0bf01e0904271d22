package runstate

import (
	_ "embed" // the workflow of a task
	"errors"
	"strings"
)

//go:embed task.workflow.yaml
var taskWorkflow string

// TaskWorkflow is the built-in workflow of a task, with placeholders.
func TaskWorkflow() string { return taskWorkflow }

// TaskBlanks are what a task's workflow is filled in with.
type TaskBlanks struct {
	Agent, Prompt    string // the agent, and the file of the task's text
	Reviewer, Review string // the agent that reviews, and the file of its prompt; Reviewer is empty if there is none
	Made             bool   // the content is there already: the agent of the built-in workflow works only when the task is sent back
}

// FillTask fills in the placeholders of a task's workflow. Without a reviewer the step review is left out, if it is
// laid out as in the built-in workflow.
func FillTask(workflow string, with TaskBlanks) (string, error) {
	if with.Reviewer == "" {
		workflow = withoutReview(workflow)
		if strings.Contains(workflow, "{reviewer}") {
			return "", errors.New("the workflow of tasks has a step for {reviewer}, and tasks.reviewer in fairlead.yaml names no agent")
		}
	}
	if with.Made {
		workflow = strings.NewReplacer("  - id: work\n", "  - id: work\n    when: steps.work.iteration > 0\n",
			"needs: [work]", "needs: [prepare, work]").Replace(workflow)
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	return strings.NewReplacer("{agent}", with.Agent, "{prompt}", quoted.Replace(with.Prompt),
		"{reviewer}", with.Reviewer, "{review}", quoted.Replace(with.Review)).Replace(workflow), nil
}

// withoutReview leaves the step review out. What needs it needs check.
func withoutReview(workflow string) string {
	const begin, next = "  - id: review", "\n  - id: "
	before, step, ok := strings.Cut(workflow, "\n"+begin)
	if !ok {
		return workflow
	}
	_, after, ok := strings.Cut(step, next)
	if !ok {
		return workflow
	}
	return before + strings.ReplaceAll(strings.ReplaceAll(next+after, "needs: [review]", "needs: [check]"), ", review]", "]")
}
