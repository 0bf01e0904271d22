package tasks

import (
	"testing"

	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
)

// A landing that fails because a person has to look again is no way back to the agent, whenever the command looks at it.
func TestWentBack(t *testing.T) {
	const said = "it conflicted with branch main"
	for _, c := range []struct {
		name, status, why, err, want string
	}{
		{"it lands", view.TaskLanding, "", said, ""},
		{"the agent works again", view.TaskWorking, "", said, said},
		{"the agent has finished again", view.TaskChecking, "", said, said},
		{"it will be shown again", view.TaskChecking, said, said, ""},
		{"it has never failed to land", view.TaskWorking, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := view.RunView{
				Task: &view.TaskView{Status: c.status, Why: c.why}, Steps: []view.StepView{{ID: task.StepLand, LastError: c.err}},
			}
			if got := wentBack(&r); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
