package runs

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/forge"
	"github.com/fairlead-dev/fairlead/git/task"
)

// taskEnv is the environment of a task's step: where the task is, and in which round. The step that talks to the
// forge also gets the person's login there; no agent and no check does.
func taskEnv(f StepFacts, step workflow.StepID, command bool) ([]string, error) {
	file := filepath.Join(f.dir, task.FileName)
	env := []string{task.File + "=" + file, fmt.Sprintf("%s=%d", task.RoundEnv, f.round), task.FromEnv + "=" + f.from}
	switch {
	case !command:
		return env, nil
	case step != task.StepLand && step != task.StepMerged:
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
