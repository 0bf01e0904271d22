package runs

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/forge"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
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
	env := []string{task.File + "=" + file, fmt.Sprintf("%s=%d", task.RoundEnv, f.round), task.FromEnv + "=" + f.from}
	switch {
	case !command:
		return env, nil
	case step == task.StepCheck:
		return append(env, task.GoverningEnv+"="+f.governing), nil
	case step == task.StepApprove:
		return append(env, task.AgainEnv+"="+f.askedOn), nil
	case step != task.StepLand:
		return env, nil
	}
	env = append(env, task.BaseEnv+"="+f.how.Task.Base)
	if f.asked != (task.Asked{}) {
		env = append(env, task.AskedEnv+"="+f.asked.String())
	}
	t, err := task.Load(file)
	if err == nil && t.How == task.PR {
		env = append(env, forge.Login(os.Environ())...)
	}
	return env, err
}
