package runfile

import (
	_ "embed" // the workflow of a task
	"strings"
)

//go:embed task.workflow.yaml
var taskWorkflow string

// TaskWorkflow is the built-in workflow of a task, with placeholders.
func TaskWorkflow() string { return taskWorkflow }

// FillTask fills in the placeholders of a task's workflow.
func FillTask(workflow, agent, prompt string) string {
	return strings.NewReplacer("{agent}", agent, "{prompt}", strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(prompt)).Replace(workflow)
}
