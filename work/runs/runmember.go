package runs

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/runstate"
)

// howRun is how a run's steps are executed. It is journaled with the run, so that the run can resume
// unchanged after a crash. The values of --env are not journaled, because they may be secrets. A
// restarted daemon takes missing values from its own environment.
type howRun struct {
	Workflow       string   `json:"workflow,omitempty"` // absolute, as all paths here
	Wrapper        string   `json:"wrapper,omitempty"`
	WrapperArgs    []string `json:"wrapper_args,omitempty"`
	Template       string   `json:"template,omitempty"`
	EnvNames       []string `json:"env_names,omitempty"`
	GateFile       string   `json:"gate_file,omitempty"`
	PollMS         int64    `json:"poll_ms,omitempty"`
	LogsDir        string   `json:"logs_dir,omitempty"`
	Workdir        string   `json:"workdir,omitempty"`
	ReportSchema   string   `json:"report_schema,omitempty"`
	Worktree       string   `json:"worktree,omitempty"` // the run's own checkout; empty: none
	WorktreeKeep   bool     `json:"worktree_keep,omitempty"`
	WorktreeBranch string   `json:"worktree_branch,omitempty"`
	Warnings       []string `json:"warnings,omitempty"` // about the workflow's file
	Task           *howTask `json:"task,omitempty"`     // nil: the run is not a task
}

// runMember is the loop's state of a run. All of it can be derived again.
type runMember struct {
	id    string
	Slots map[string]*sessions.Slot // slots of steps without an agent
	doing map[string]bool           // actions that were started, by key
	env   map[string]string         // values of --env; in memory only
	dirty chan struct{}             // signals that run_state.json is behind; nil: it has no writer yet
	due   uint64                    // number of changes that run_state.json has to show
	said  atomic.Uint64             // the last of these changes that it shows
	watch context.CancelFunc        // stops the polling of gates and answers; nil: not polling
	state *stateWriter              // the writer of run_state.json
	pen   context.CancelFunc        // stops it; nil: it does not run
	tree  string                    // the outcome for its worktree; empty: nothing yet
	job   sync.Mutex                // held while a function does the job of a task
	left  string                    // why its branch in the repository has not the newest commits; empty: it has
}

// RunMember is what is kept of a run, made when it is first asked for.
func (c *Controller) RunMember(id string) *runMember {
	m := c.Live[id]
	if m == nil {
		m = &runMember{id: id, Slots: map[string]*sessions.Slot{}, doing: map[string]bool{}, env: map[string]string{}}
		m.state = &stateWriter{e: c, m: m}
		c.Live[id] = m
	}
	return m
}

// howOf reads from the team how a run is executed.
func howOf(t *team.Team, id string) howRun {
	var how howRun
	if text := t.Notes[id].Settings.How; text != "" {
		if err := json.Unmarshal([]byte(text), &how); err != nil {
			panic("engine: what is journaled of run " + id + " cannot be read: " + err.Error())
		}
	}
	return how
}

// environ returns K=V for every step. Values come from the start of the run, or from the daemon's
// environment under the same name.
func (c *Controller) environ(id string, how howRun) []string {
	m := c.RunMember(id)
	var env []string
	for _, name := range how.EnvNames {
		value, ok := m.env[name]
		if !ok && c.opts.Lookup != nil {
			value, ok = c.opts.Lookup(name)
		}
		if ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// The paths of a run's files.
func runDir(r *workflow.Run) string { return filepath.Dir(r.ReportsDir) }

func stateFile(r *workflow.Run) string { return filepath.Join(runDir(r), runstate.RunStateName) }

func logFile(r *workflow.Run, how howRun, step workflow.StepID, attempt int) string {
	dir := how.LogsDir
	if dir == "" {
		dir = filepath.Join(runDir(r), "logs")
	}
	return filepath.Join(dir, runstate.StepLogName(string(r.ID), string(step), attempt))
}

// actOnRun starts the pending actions of a run and updates run_state.json.
func (c *Controller) actOnRun(id string) {
	r := c.loop.State().Runs[id]
	if r == nil || c.loop.Holding() {
		c.forgetRun(id)
		return
	}
	m := c.RunMember(id)
	listed := map[string]bool{}
	asks := false
	for _, todo := range c.loop.State().RunActions(id, c.loop.Now()) {
		if todo.Do == team.AskForAnswer {
			asks = true
			listed[todo.Key] = true
			m.doing[todo.Key] = true
			continue
		}
		if todo.Do == team.StartSession || todo.Do == team.EndSession {
			continue // package starts does
		}
		if (todo.Do == team.FindItems || todo.Do == team.FindReport) && c.loop.State().Notes[id].Away != "" {
			continue // what it reads has not arrived from the previous leader
		}
		listed[todo.Key] = true
		if m.doing[todo.Key] {
			continue
		}
		m.doing[todo.Key] = true
		c.actOnStep(r, todo)
	}
	if how := howOf(c.loop.State(), id); how.Worktree != "" && runIsDone(r) {
		key := "worktree/" + id
		listed[key] = true
		if !m.doing[key] {
			m.doing[key] = true
			repo := r.RepoDir
			c.loop.Go(func(ctx context.Context) {
				end, err := c.retireWorktree(ctx, id, repo, how)
				if err != nil && ctx.Err() == nil {
					c.log.Error("the worktree of a run could not be taken away; nothing of it is lost, and the next start tries again",
						"run", id, "error", err)
				}
				_ = c.loop.View(ctx, func(*team.Team) { m.tree = end.words(err) }) // it fails only if the loop has stopped
			})
		}
	} else {
		m.tree = ""
	}
	c.actOnTask(id, listed)
	if of, why := takenBackBy(c.loop.State(), r); of != nil {
		key := "taken-back/" + string(of.ID)
		listed[key] = true
		if !m.doing[key] {
			m.doing[key] = true
			id, landed, dir := string(of.ID), howOf(c.loop.State(), id).Task.Landed, runDir(of)
			asked := c.loop.State().Tasks[id].Shown.Asked
			c.loop.Go(func(ctx context.Context) { c.showTakenBack(ctx, id, dir, landed, asked, why) })
		}
	}
	for key := range m.doing {
		if !listed[key] {
			delete(m.doing, key)
		}
	}
	c.watchFolder(id, r)
	c.watchRepository(id, r)
	c.ProjectRun(m)
	c.lookAfter(m, r, asks)
}

// runIsDone reports whether a run has ended and is not expected to resume. A failed run keeps its
// worktree, because people debug it there.
func runIsDone(r *workflow.Run) bool {
	switch r.Status() {
	case workflow.IsCompleted, workflow.IsCancelled:
	case workflow.IsRunning, workflow.IsWaiting, workflow.IsFailed:
		return false
	}
	for todo := range r.Actions(workflow.Now{Held: true}) {
		if todo.Do == workflow.EndIt || todo.Do == workflow.RunIt || todo.Do == workflow.FindReport {
			return false
		}
	}
	return true
}

// forgetRun stops the work for a run that was removed from the team's state.
func (c *Controller) forgetRun(id string) {
	m := c.Live[id]
	if m == nil || c.loop.Holding() {
		return
	}
	if m.watch != nil {
		m.watch()
	}
	if m.pen != nil {
		m.pen()
	}
	delete(c.Live, id)
	delete(c.snapshots, id)
	delete(c.follow.open, id)
}

// actOnStep carries out an action of a run. Calculations run here, on a team whose changes are
// all journaled. Actions that read files run outside the loop.
func (c *Controller) actOnStep(r *workflow.Run, todo team.Action) {
	id, step := string(r.ID), todo.Step.Lease.Step
	switch todo.Do {
	case team.EvaluateCondition:
		what := workflow.WhenWeighed{Step: step, Iteration: todo.Step.Iteration, Verdict: runstate.WeighWhen(r, step)}
		// a refusal means that the action is no longer needed
		c.loop.Go(func(ctx context.Context) { _, _ = c.SubmitRun(ctx, sessions.ByEngine, id, what) })
	case team.FindItems:
		plan, _, _ := r.Find(step)
		ask := itemsAsked{step: step, iteration: todo.Step.Iteration, repo: workedOn(r.RepoDir, howOf(c.loop.State(), id))}
		switch {
		case plan.Loop.ItemsFromStep != "":
			ask.from = plan.Loop.ItemsFromStep
			if _, p, ok := r.Find(ask.from); ok && len(p.Artifacts) > 0 {
				ask.file = p.Artifacts[0]
			}
		default:
			ask.file = plan.Loop.ItemsFromArtifact
		}
		// a refusal means that the action is no longer needed
		c.loop.Go(func(ctx context.Context) { _, _ = c.SubmitRun(ctx, sessions.ByEngine, id, ask.find()) })
	case team.FindReport:
		lease, f := todo.Step.Lease,
			StepFacts{
				Cmd: runstate.StepCommand{RunID: id, StepID: string(step)}, how: howOf(c.loop.State(), id),
				Report: r.ReportFile(step),
			}
		c.loop.Go(func(ctx context.Context) { c.lookForReport(ctx, id, lease, f) })
	default:
		panic("runs: unknown action: " + string(todo.Do))
	}
}

// SubmitRun submits an event of a run. A refusal is an answer: the subject of the event has ended.
func (c *Controller) SubmitRun(ctx context.Context, by change.Actor, id string, what any) (uint64, error) {
	ev := loop.EventBy(by, "", what)
	ev.Run = id
	return c.loop.Do(ctx, loop.Request{Event: ev})
}
