package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/rank"
	"github.com/fairlead-dev/fairlead/core/table"
	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

const (
	taskIDPrefix      = "T"
	taskIterationsMax = 20 // loop-backs for each gate: a person may ask for many changes
	slugWords         = 5
	slugBytesMax      = 40
	requestBytesMax   = 64 << 10
)

// howTask is the part of howRun for a run that is a task.
type howTask struct {
	Text   string `json:"text"` // its first line
	Agent  string `json:"agent"`
	Base   string `json:"base"`
	Branch string `json:"branch"`
	Tree   string `json:"tree"`
	Issue  string `json:"issue,omitempty"`
	Intake bool   `json:"intake,omitempty"` // the daemon took it by its label

	TakesBack string `json:"takes_back,omitempty"` // the task whose landing it reverts
	Landed    string `json:"landed,omitempty"`     // the commit with which that one landed
}

// taskStart says how a task begins, other than by a person's text.
type taskStart struct {
	intake bool // the daemon took it by its label

	takesBack *task.Task // the task whose landing it reverts; nil: none
	landed    string     // the commit with which that one landed
	revert    string     // the commit that reverts it
}

// JournaledTask is what the journal has of a task: enough to remove its folder if its task.json is gone. It is zero if there is no such
// run, or it is not a task.
func JournaledTask(t *team.Team, id string) (workspace string, is task.Task) {
	r, how := t.Runs[id], howOf(t, id).Task
	if r == nil || how == nil {
		return "", is
	}
	return r.RepoDir,
		task.Task{ID: id, Text: how.Text, Agent: how.Agent, Run: runDir(r), Tree: how.Tree, Base: how.Base, Branch: how.Branch}
}

// requested is what sends a task back to its agent, if a file has more of it than the reason in the journal: what a person asked for in
// the round that was shown last, or what a forge says of a pull request. It is empty otherwise.
func (f StepFacts) requested(ctx context.Context) (string, error) {
	name := task.FeedbackName
	switch f.sentBy {
	case task.StepLand:
	case task.StepApprove:
		t, err := f.task()
		if err != nil {
			return "", err
		}
		round, err := (task.Review{Task: t}).Requested(ctx)
		if err != nil || round == 0 {
			return "", err
		}
		name = task.RequestName(round)
	default:
		return "", nil
	}
	text, err := sessions.ReadUpTo(filepath.Join(f.dir, name), requestBytesMax)
	if err != nil {
		return "", nil //nolint:nilerr // the journal has a short form of it
	}
	return strings.TrimSpace(string(text)), nil
}

// keepRejection writes what a person said who rejects a task, if `fairlead request` has not: a rejection ends a round, too. remove takes
// it back.
func keepRejection(ctx context.Context, dir, note string) (remove func(), err error) {
	remove = func() {}
	t, err := task.Load(filepath.Join(dir, task.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return remove, nil
	} else if err != nil {
		return remove, err
	}
	review := task.Review{Task: t}
	if there, err := review.Requested(ctx); err != nil || there > 0 {
		return remove, err
	}
	round, err := review.Round(ctx)
	if err != nil {
		return remove, err
	}
	name := filepath.Join(dir, task.RequestName(round))
	text := cmp.Or(strings.TrimSpace(note), "It was rejected, and no reason was given.")
	return func() { _ = os.Remove(name) }, os.WriteFile(name, []byte(text+"\n"), 0o600)
}

// startTask starts a task: it makes the folder and the files, and begins the run. After a refusal nothing is left.
func (c *Controller) startTask(ctx context.Context, by change.Actor, asked view.TaskFlags, start taskStart) (shown view.RunView,
	err error,
) {
	ctx = context.WithoutCancel(ctx) // once begun it is finished: a request has seconds, a large clone may take minutes
	conf := c.opts.Config
	no := func(err error) (view.RunView, error) {
		return view.RunView{}, &table.Refusal{Subject: "task", Event: "run_asked", State: "asked", Row: "W1", Reason: err.Error()}
	}
	text := strings.TrimSpace(asked.Text)
	if text == "" {
		return no(errors.New("it has no text; say what is to be done"))
	}
	agent, err := agentForTask(conf, text, asked.Agent)
	if err != nil {
		return no(err)
	}
	workspace, err := sessions.SettledDir(conf.Dir)
	if err != nil {
		return view.RunView{}, err
	}
	if full, err := c.diskFull(ctx, workspace); err != nil {
		return view.RunView{}, err
	} else if full != "" {
		return no(errors.New(full))
	}
	t, err := task.Place(ctx, workspace, cmp.Or(asked.Base, conf.Tasks.Base))
	if err != nil {
		return no(err)
	}
	id, release, err := c.nextTask(ctx, workspace)
	if err != nil {
		return view.RunView{}, err
	}
	defer release()
	t.ID, t.Text, t.Agent, t.How = id, text, agent.Name, conf.Tasks.Land
	t.Remote, t.Poll, t.Ask, t.Issue = conf.Tasks.Remote, int(conf.Tasks.PR.Poll/time.Second), conf.Tasks.PR.Ask, asked.Issue
	t.Copy = slices.Clone(conf.Tasks.Copy)
	t = inForce(t, conf)
	if start.takesBack != nil {
		t.How = start.takesBack.How
	}
	if err := t.Include(ctx); err != nil {
		return no(err)
	}
	t.Run = filepath.Join(runsDir(workspace), id)
	t.Branch = strings.NewReplacer("{id}", id, "{slug}", slug(t.Title())).Replace(conf.Tasks.Branch)
	t.Wall = task.Wall{
		Mode: agent.Sandbox.Mode, Read: agent.Sandbox.Read, Write: agent.Sandbox.Write, Hide: agent.Sandbox.Hide,
		Sockets: agent.Sandbox.Sockets, Network: t.Wall.Network,
	}
	addWorkspaces(&t, conf, agent)
	if t.Tree, err = placeFor(&runRequest{id: id, repo: workspace}, view.RunFlags{}); err != nil {
		return view.RunView{}, err
	}
	if err := os.MkdirAll(t.Run, DirMode); err != nil {
		return view.RunView{}, fmt.Errorf("make the run's folder: %w", err)
	}
	made, begun := false, false
	defer func() {
		// after any other error the run may have started
		if err != nil && (!begun || errors.As(err, new(*table.Refusal))) {
			if made {
				err = errors.Join(err, t.Unmake(ctx))
			}
			err = errors.Join(err, os.RemoveAll(t.Tree), os.RemoveAll(t.Run))
		}
	}()
	makes := t.Make
	if start.takesBack != nil {
		makes = func(ctx context.Context) error { return t.MakeRevert(ctx, start.revert) }
	}
	told, err := attach(t, asked.Attachments)
	if err != nil {
		return no(err)
	}
	for name, text := range map[string]string{
		task.PromptName: text + "\n" + told, task.ReviewName: "(written when the review begins)\n",
	} {
		if err := os.WriteFile(filepath.Join(t.Run, name), []byte(text), 0o600); err != nil {
			return view.RunView{}, err
		}
	}
	if err := errors.Join(t.Save(), makes(ctx)); err != nil {
		return no(err)
	}
	made = true
	req := &runRequest{
		id: id, repo: workspace, plan: taskPlan(t, conf.Tasks.Reviewer),
		options: workflow.DefaultOptions(runtime.NumCPU()), settings: team.RunSettings{After: asked.After}, how: howRun{
			Workdir: t.Workdir(), Task: &howTask{
				Text: clip.Text(t.Title(), 200), Agent: agent.Name, Base: t.Base, Branch: t.Branch, Tree: t.Tree,
				Issue: asked.Issue, Intake: start.intake,
			},
		},
	}
	req.task = &state.Plan{
		Reviewer: conf.Tasks.Reviewer != "", Made: start.takesBack != nil, RoundsMax: taskIterationsMax,
	}
	if start.takesBack != nil {
		req.how.Task.TakesBack, req.how.Task.Landed = start.takesBack.ID, start.landed
	}
	begun = true
	return c.begin(ctx, by, req, workflow.RunAsked{
		ID: workflow.RunID(id), Plan: req.plan, Options: req.options, By: by.ID,
		RepoDir: req.repo, ReportsDir: filepath.Join(t.Run, "reports"), ManualInputsDir: filepath.Join(t.Run, "manual_inputs"),
	})
}

// addWorkspaces adds the agents' workspaces to a task: those with state files below its repository, and those that its agent may not see.
func addWorkspaces(t *task.Task, conf *config.Config, agent config.Agent) {
	for i := range conf.Agents {
		if home, err := filepath.Rel(t.Repo, conf.Agents[i].Workspace); err == nil && filepath.IsLocal(home) {
			t.Homes = append(t.Homes, filepath.ToSlash(home))
		}
		if conf.Agents[i].Workspace != agent.Workspace {
			t.Wall.Others = append(t.Wall.Others, conf.Agents[i].Workspace)
		}
	}
}

// inForce is a task with the commands of the configuration in force: what judges the work is never older than what a person has set.
func inForce(t task.Task, conf *config.Config) task.Task {
	t.Setup, t.Checks, t.Timeout, t.ChecksIn = conf.Tasks.Setup, conf.Tasks.Checks, conf.Tasks.Timeout, conf.Tasks.ChecksIn
	t.Governing, t.Wall.Network = governingOf(conf, filepath.Join(t.Repo, filepath.FromSlash(t.Prefix))), conf.Tasks.Network.Rules("", "")
	return t
}

// judgedBy loads a task, and brings its file to the configuration in force.
func judgedBy(file string, conf *config.Config) (task.Task, error) {
	t, err := task.Load(file)
	if err != nil {
		return t, err
	}
	now := inForce(t, conf)
	if reflect.DeepEqual(now, t) {
		return t, nil
	}
	return now, now.Save()
}

// taskPlan are the steps of a task that sessions do. The task orders each when it is its job (core/task).
func taskPlan(t task.Task, reviewer string) workflow.Plan {
	own := func(name workflow.StepID) workflow.Step {
		return workflow.Step{ID: name, Command: []string{ownProgram, "task", "step", string(name)}}
	}
	steps := []workflow.Step{
		own(task.StepPrepare),
		{
			ID: task.StepWork, Agent: t.Agent, Prompt: filepath.Join(t.Run, task.PromptName), ContinueConversation: true,
			ReportOptional: true,
		},
		own(task.StepCheck),
	}
	if reviewer != "" {
		steps = append(steps, workflow.Step{
			ID: task.StepReview, Agent: reviewer, Prompt: filepath.Join(t.Run, task.ReviewName), ReportOptional: true,
		})
	}
	steps = append(steps, workflow.Step{ID: task.StepApprove, Human: true})
	last := own(task.StepMerged)
	if t.How == task.PR {
		last = own(task.StepLand)
		last.MaxAttempts = 1
	}
	steps = append(steps, last)
	for i := range steps {
		steps[i].Ordered = true
	}
	return workflow.Plan{Name: "task", Steps: steps}
}

// agentForTask is the named agent, the only one, or the one whose description fits the text.
func agentForTask(conf *config.Config, text, name string) (config.Agent, error) {
	var names []string
	var all []rank.Description
	for i := range conf.Agents {
		if a := &conf.Agents[i]; a.Loop != config.LoopForeign {
			names = append(names, a.Name)
			all = append(all, rank.Description{Name: a.Name, Text: a.Description})
		}
	}
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	if name == "" {
		found := rank.Rank(text, all)
		if found.Best == "" {
			return config.Agent{},
				fmt.Errorf("no agent's description fits the text (%s); name one with --agent: %s", found.Reason,
					cmp.Or(strings.Join(names, ", "), "there is none in fairlead.yaml"))
		}
		name = found.Best
	}
	agent, ok := conf.Agent(name)
	if !ok || !slices.Contains(names, name) {
		return config.Agent{},
			fmt.Errorf("there is no agent %q that can take a task; there are %s", name, cmp.Or(strings.Join(names, ", "), "none"))
	}
	return agent, nil
}

// nextTask reserves the next free id: T1, T2 and so on.
func (c *Controller) nextTask(ctx context.Context, workspace string) (id string, release func(), err error) {
	last := 0
	note := func(name string) {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, taskIDPrefix)); err == nil && strings.HasPrefix(name, taskIDPrefix) {
			last = max(last, n)
		}
	}
	entries, err := os.ReadDir(runsDir(workspace))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	for _, e := range entries {
		note(e.Name())
	}
	if err := c.loop.View(ctx, func(t *team.Team) {
		for id := range t.Runs {
			note(id)
		}
		for id := range t.Archive {
			note(id)
		}
	}); err != nil {
		return "", nil, err
	}
	for {
		last++
		id = taskIDPrefix + strconv.Itoa(last)
		release, err := c.reserve(ctx, id)
		if !errors.As(err, new(*table.Refusal)) {
			return id, release, err
		}
	}
}

// slug makes a part of a branch name from the first words of a text.
func slug(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text),
		func(c rune) bool { return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	name := strings.Join(words[:min(len(words), slugWords)], "-")
	return cmp.Or(strings.TrimRight(name[:min(len(name), slugBytesMax)], "-"), "task")
}
