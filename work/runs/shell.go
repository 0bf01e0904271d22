package runs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// OpenShell opens a shell for a person: in the workspace of an agent, or in the folder of a task.
func (c *Controller) OpenShell(ctx context.Context, by change.Actor, name string) (view.Shell, error) {
	var of sessions.ShellOf
	var facts StepFacts
	var status string
	var no error
	if err := c.loop.View(ctx, func(t *team.Team) {
		if c.sessions.Slots[name] != nil {
			of, no = c.shellOfAgent(t, name)
			return
		}
		of, facts, status, no = c.shellOfTask(t, name)
	}); err != nil || no != nil {
		return view.Shell{}, errors.Join(err, no)
	}
	if of.Run != "" {
		if _, err := os.Lstat(of.Dir); errors.Is(err, fs.ErrNotExist) {
			return view.Shell{}, noShell(of.Run, status, folderless(of.Run, status))
		}
	}
	if of.Session != "" && of.Run != "" {
		facts.Cmd.Env, facts.Cmd.ArtifactsDir, facts.Cmd.ValuesDir = facts.env, filepath.Join(facts.dir, "artifacts"),
			filepath.Join(facts.dir, valuesFolder)
		env, _, err := facts.Cmd.Environ() // large values have their files since the session began
		if err != nil {
			return view.Shell{}, err
		}
		of.Env, of.Seen = env, facts.runView(env)
	}
	return c.sessions.ShellIn(ctx, by, of)
}

// shellOfAgent is a shell in an agent's workspace. It shares the folders of a session that works there.
func (c *Controller) shellOfAgent(t *team.Team, name string) (of sessions.ShellOf, err error) {
	of = sessions.ShellOf{Agent: name, Dir: c.sessions.Slots[name].Conf.Workspace}
	if a := t.Agents[name]; a != nil && a.Session != nil {
		_, _, isStep := team.StepOf(a.Session.For)
		_, _, works := team.DispatchActionOf(a.Session.For)
		if !isStep && !works {
			of.Session, err = c.here(t, name, a.Session.ID)
		}
	}
	return of, err
}

// shellOfTask is a shell in the folder of a task, as its agent sees it.
func (c *Controller) shellOfTask(t *team.Team, name string) (of sessions.ShellOf, facts StepFacts, status string, err error) {
	r := t.Runs[name]
	if r == nil {
		return of, facts, "", &team.Unknown{What: "agent", Name: name, Known: slices.Concat(t.Names(), t.RunIDs())}
	}
	how := howOf(t, name)
	if how.Task == nil {
		return of, facts, "", noShell(name, string(r.Status()), "it is a run and no task; a shell is opened for an agent or for a task")
	}
	status = string(t.Tasks[name].Status)
	if where := t.Notes[name].Away; where != "" {
		return of, facts, status, noShell(name, status, "its folder is on host "+where)
	}
	of = sessions.ShellOf{Agent: how.Task.Agent, Run: name, Dir: how.Workdir, Clone: how.Task.Tree}
	if agent, s, ok := t.SessionOf(name, task.StepWork); ok {
		if of.Agent = agent; agent == "" {
			of.Agent = how.Task.Agent
		}
		of.Session, err = c.here(t, name, s.ID)
		facts, _ = c.FactsOf(t, s, name, workflow.StepID(task.StepWork))
	}
	return of, facts, status, err
}

// here returns a session that runs on this machine.
func (c *Controller) here(t *team.Team, of, session string) (string, error) {
	if where := c.sessions.OtherHost(t, session); where != "" {
		return "", noShell(of, "away",
			"its session "+session+" runs on host "+where+
				"; a shell is opened on the machine of the leader alone, when that session is over")
	}
	return session, nil
}

// folderless says why a task has no folder.
func folderless(id, status string) string {
	why := "its folder is gone"
	if status == view.TaskDone || status == view.TaskDropped {
		why = "it is " + status + ", and its folder was removed"
	}
	return why + "; `fairlead task restore " + id + "` makes it again"
}

func noShell(of, state, reason string) error {
	return &table.Refusal{Subject: of, Event: "open_shell", State: state, Row: "E7", Reason: reason}
}
