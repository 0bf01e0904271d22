package runs

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/git/worktree"
)

// playable reports the steps that cannot be run, with their positions in the file.
func playable(read *runstate.WorkflowFile, how howRun, conf *config.Config) error {
	if how.Template != "" {
		if err := runstate.CheckTemplate(how.Template); err != nil {
			return worktree.RefuseRun(read.Plan.Name, "--command-template: "+err.Error())
		}
	}
	if how.Wrapper != "" {
		if info, err := os.Stat(how.Wrapper); err != nil || info.IsDir() {
			return worktree.RefuseRun(read.Plan.Name, fmt.Sprintf("--wrapper %s is no file that could be run", how.Wrapper))
		}
	}
	if list := playableFaults(read, how, conf); len(list) > 0 {
		return (&runstate.FileFaults{}).With(list)
	}
	return nil
}

// playableFaults are the steps without an agent that can run them. A step whose own agent is faulty was reported.
func playableFaults(read *runstate.WorkflowFile, how howRun, conf *config.Config) (list []runstate.FileFault) {
	if how.Template != "" || how.Wrapper != "" {
		return nil
	}
	known := map[string]bool{}
	var names []string
	for i := range conf.Agents {
		if conf.Agents[i].Loop != config.LoopForeign {
			known[conf.Agents[i].Name] = true
			names = append(names, conf.Agents[i].Name)
		}
	}
	for i, step := range read.Plan.Steps {
		if len(step.Command) > 0 || step.Agent == "" || known[step.Agent] {
			continue
		}
		fault := read.Place(workflow.Fault{Step: i, ID: step.ID, Field: "agent", Item: -1})
		fault.Text = fmt.Sprintf("no agent %q is configured (there are %s), and the step has no command; configure it in fairlead.yaml, or run with --wrapper", step.Agent, cmp.Or(strings.Join(names, ", "), "none"))
		list = append(list, fault)
	}
	return list
}
