package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/fairlead-dev/fairlead/core/change"
	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// taskJob is a job of a task that is a function over git, with what it needs of the team. It can be done twice: after the death of the
// daemon the next one does it again.
type taskJob struct {
	id, dir string
	from    string // the other host that may have written the folder; empty: none
	base    string // as the journal has it
	is      state.Task
}

// actOnTask begins the job of a task, if that is a function. listed notes its key.
func (c *Controller) actOnTask(id string, listed map[string]bool) {
	t := c.loop.State()
	if t.Tasks[id] == nil {
		return
	}
	if key := jobKey(t.Tasks[id]); key != "" {
		listed[key] = true
	}
	if t.Stopping {
		return
	}
	for _, next := range append(landFirst(t), id) {
		if isFunction(t, next) && (t.Tasks[next].Job != state.Land || slices.Contains(landFirst(t), next)) {
			c.beginJob(t, next)
		}
	}
}

func jobKey(k *state.Task) string { return fmt.Sprintf("job/%d", k.N) }

// isFunction reports whether the job of a task is a function that can be called now.
func isFunction(t *team.Team, id string) bool {
	k, r := t.Tasks[id], t.Runs[id]
	return k != nil && r != nil && r.Stage == workflow.Driven && t.Notes[id].Away == "" &&
		(k.Job == state.Show || k.Job == state.Land && !landsByStep(r))
}

// landsByStep reports whether a task lands as a pull request.
func landsByStep(r *workflow.Run) bool {
	_, _, is := r.Find(task.StepLand)
	return is
}

// landFirst lists the tasks that may land now: of those of one base, the one that waits longest.
func landFirst(t *team.Team) (first []string) {
	byBase := map[[2]string]string{}
	for id, k := range t.Tasks {
		r := t.Runs[id]
		if k.Status != state.Landing || r == nil || r.Stage != workflow.Driven || landsByStep(r) {
			continue
		}
		of := [2]string{r.RepoDir, howOf(t, id).Task.Base}
		if other, is := byBase[of]; !is || landsBefore(t, id, other) {
			byBase[of] = id
		}
	}
	for _, id := range byBase {
		first = append(first, id)
	}
	slices.Sort(first)
	return first
}

// landsBefore orders landings by when they were to begin: one that a person tries again is behind those that wait.
func landsBefore(t *team.Team, a, b string) bool {
	return cmp.Or(t.Tasks[a].Since.Compare(t.Tasks[b].Since), cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) < 0
}

func (c *Controller) beginJob(t *team.Team, id string) {
	m, k := c.RunMember(id), t.Tasks[id]
	key := jobKey(k)
	if m.doing[key] {
		return
	}
	m.doing[key] = true
	job := taskJob{id: id, dir: runDir(t.Runs[id]), from: t.Notes[id].From, base: howOf(t, id).Task.Base, is: *k}
	c.loop.Go(func(ctx context.Context) {
		m.job.Lock()
		defer m.job.Unlock()
		wanted := false
		if c.loop.View(ctx, func(t *team.Team) { wanted = isFunction(t, id) && t.Tasks[id].N == job.is.N }) != nil || !wanted {
			return
		}
		ended := c.do(ctx, job)
		if ctx.Err() != nil {
			return // the next daemon does it again
		}
		ended.N = job.is.N
		if _, err := c.SubmitRun(ctx, sessions.ByEngine, id, ended); err != nil && ctx.Err() == nil {
			c.log.Warn("the result of a task's job was refused", "task", id, "job", job.is.Job, "error", err)
		}
	})
}

// BetweenJobs waits until no function works on a task, and keeps others from beginning.
func (c *Controller) BetweenJobs(ctx context.Context, id string) (release func(), err error) {
	var m *runMember
	if err := c.loop.View(ctx, func(*team.Team) { m = c.RunMember(id) }); err != nil {
		return nil, err
	}
	m.job.Lock()
	return m.job.Unlock, nil
}

// do does a job. An error of git or of a file is an outcome, too.
func (c *Controller) do(ctx context.Context, job taskJob) state.JobEnded {
	t, err := judgedBy(filepath.Join(job.dir, task.FileName), c.opts.Config)
	if err != nil {
		return state.JobEnded{Outcome: state.Fails, Why: err.Error()}
	}
	t.From, t.Base, t.Asked = job.from, job.base, job.is.Shown.Asked
	if job.is.Job == state.Show {
		return show(ctx, t, job)
	}
	return land(ctx, t)
}

// show makes what a person is to see.
func show(ctx context.Context, t task.Task, job taskJob) state.JobEnded {
	known, err := task.Pull{}, error(nil)
	if t.How == task.PR && t.Ask != task.AskAlways {
		known, err = task.LoadPull(t)
	}
	if err != nil {
		return state.JobEnded{Outcome: state.Fails, Why: err.Error()}
	}
	shown, err := t.Show(ctx, t.Run)
	if err != nil {
		return state.JobEnded{Outcome: state.Fails, Why: err.Error()}
	}
	review, err := runstate.LoadReview(filepath.Join(t.Run, task.FindingsName))
	if err != nil {
		return state.JobEnded{Outcome: state.Fails, Why: err.Error()}
	}
	var lines []string
	if job.is.Why != "" {
		lines = append(lines, "shown again: "+job.is.Why)
	}
	if review.Rounds > 0 {
		lines = append(lines, review.Lines()...)
	}
	if shown.Governs.Hash != "" {
		lines = append(lines, shown.Governs.Line())
	}
	ended := state.JobEnded{Outcome: state.OK, Shown: state.Shown{
		Asked: shown.Asked, Governs: shown.Governs, Files: shown.Files, Told: shown.Told, Round: shown.Round, Unchanged: shown.Unchanged,
		Lines: slices.Concat(lines, shown.Told, shown.Stat), Diff: shown.Diff,
	}}
	if known.Number > 0 && (shown.Governs.Hash == "" || shown.Governs.Hash == job.is.Yes.Governing) {
		ended.Outcome = state.Known
	}
	return ended
}

// land lands what was approved.
func land(ctx context.Context, t task.Task) state.JobEnded {
	done, err := t.Land(ctx)
	ended := state.JobEnded{Outcome: state.OK, Landed: done.Commit, Failure: task.FailureOf(err)}
	if err != nil {
		ended.Why = cmp.Or(task.AsksAgain(err, t.Base), err.Error())
	}
	switch {
	case errors.As(err, new(*task.Unchecked)):
		ended.Outcome = state.Recheck
	case task.AsksAgain(err, t.Base) != "":
		ended.Outcome = state.Again
	case err != nil:
		ended.Outcome = state.Room
	default:
		ended.Why = landedWords(ctx, t, done)
	}
	return ended
}

// landedWords says what has landed, and removes the folder that is of no use any more.
func landedWords(ctx context.Context, t task.Task, done task.Landed) string {
	said := "there was nothing to land"
	if done.Commit != "" {
		said = fmt.Sprintf("commit %.10s on %s", done.Commit, t.Base)
	}
	if done.Checkout != "" {
		said += ", and its checkout " + done.Checkout + " has moved with it"
	}
	if done.Joined {
		said += "; its commits could not be replayed one by one, so it is one commit"
	}
	if done.Later {
		said += "; files that were changed after they were shown did not land, and are in " + t.Ref()
	} else if stays, err := t.RemoveLanded(ctx); err != nil {
		said += "; " + err.Error()
	} else if stays {
		said += "; the folder was changed meanwhile, and stays"
	}
	return said
}

// resumeTask lets a task go on that failed, was dropped, or could not land.
func (c *Controller) resumeTask(ctx context.Context, by change.Actor, was *runRequest, flags view.RunFlags) (view.RunView, error) {
	shown, err := c.RunByID(ctx, was.id)
	if err != nil || shown.Task.Status == string(state.Done) && flags.StartAtStep == "" { // then there is nothing to do
		return shown, err
	}
	release, err := c.haveFolder(ctx, was.id)
	if err != nil {
		return shown, err
	}
	defer release()
	var what state.Input = state.Resume{Job: state.Job(flags.StartAtStep)}
	if shown.Task.FailedStep == string(state.Land) && shown.Task.Status == string(state.NeedsYou) &&
		(flags.StartAtStep == "" || flags.StartAtStep == string(state.Land)) {
		what = state.Try{}
	}
	if _, err := c.SubmitRun(ctx, by, was.id, what); err != nil {
		return shown, err
	}
	return c.RunByID(ctx, was.id)
}
