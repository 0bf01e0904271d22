package runs

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/forge"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/task"
	"github.com/fairlead-dev/fairlead/view"
)

// pullState adds what is known of a task's pull request.
func pullState(shown *view.TaskView, r *workflow.Run) {
	_, land, ok := r.Find(task.StepLand)
	if !ok {
		return
	}
	state := ""
	for _, m := range land.Metrics {
		switch m.Name {
		case view.MetricPullURL:
			shown.PullRequest = m.Value
		case view.MetricPull:
			state = m.Value
		}
	}
	switch {
	case land.Rounds > 0 && (land.State == workflow.Pending || land.State == workflow.Running) && shown.PullRequest != "":
		shown.Status = view.TaskPROpen
	case land.State == workflow.Completed && state == string(task.Closed):
		shown.Status = view.TaskDropped
	}
}

// taskEnv is the environment of a task's step: where the task is, and in which round. The step that talks to the
// forge also gets the person's login there; no agent and no check does.
func taskEnv(f StepFacts, step workflow.StepID, command bool) ([]string, error) {
	file := filepath.Join(f.dir, task.FileName)
	env := []string{task.File + "=" + file, fmt.Sprintf("%s=%d", task.RoundEnv, f.round)}
	if step != task.StepLand || !command {
		return env, nil
	}
	t, err := task.Load(file)
	if err == nil && t.How == task.PR {
		env = append(env, forge.Login(os.Environ())...)
	}
	return env, err
}
