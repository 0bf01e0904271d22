package view

import (
	"fmt"

	"github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Unlanded reports whether a task waits for a person because its newest landing met a conflict, or a check that failed on the merged files.
func (t *TaskView) Unlanded() bool {
	return t.Asked != nil && t.Landing != nil && (t.Landing.Failed == task.FailedConflict || t.Landing.Failed == task.FailedChecks)
}

// WaysOn says what a person can do about a task that is Unlanded.
func (t *TaskView) WaysOn() string {
	id, agent := clip.Text(t.ID, wayBytesMax), clip.Text(t.Agent, wayBytesMax)
	return fmt.Sprintf("`fairlead request %s` sends it back to %s, `fairlead checkout %[1]s` makes a worktree to resolve it by hand", id, agent)
}

// wayBytesMax bounds the names in WaysOn.
const wayBytesMax = 100
