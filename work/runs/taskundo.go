package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// landing is what the journal has of a task's landing.
type landing struct {
	task.Task
	status string // of the task
	commit string // empty: none landed
	pull   string // the URL of its pull request; empty: it has none
	asked  task.Asked
	yes    string // the hash of the governing files to which a person has said yes in the newest approval; empty: none
	undoes string // the open task that reverts it; empty: there is none
	busy   string // a task that lands on the same branch now; empty: none does
}

// landingOf reads what the journal has of a task's landing.
func (c *Controller) landingOf(ctx context.Context, id, event string) (is landing, err error) {
	archived, dir := false, ""
	if err := c.loop.View(ctx, func(t *team.Team) {
		r, how := t.Runs[id], howOf(t, id).Task
		if r == nil || how == nil {
			_, archived = t.Archive[id]
			return
		}
		k := t.Tasks[id]
		is.status, is.commit, is.asked, is.yes, dir = string(k.Status), k.Landed, k.Shown.Asked, k.Yes.Governing, runDir(r)
		if _, p, ok := r.Find(task.StepLand); ok {
			is.pull = p.Metric(view.MetricPullURL)
		}
		for _, other := range t.RunIDs() {
			of, o := howOf(t, other).Task, t.Tasks[other]
			if of == nil || other == id {
				continue
			}
			if of.TakesBack == id && of.Landed == is.commit && o.Status != state.Done && o.Status != state.Dropped {
				is.undoes = other
			}
			if o.Status == state.Landing && of.Base == how.Base {
				is.busy = other
			}
		}
	}); err != nil {
		return is, err
	}
	if archived {
		return is, &table.Refusal{
			Subject: "task " + id, Event: event, State: "archived", Row: "W9",
			Reason: "it is archived; bring it back with `fairlead run resume " + id + "`, and then try again",
		}
	}
	if dir == "" {
		return is, &team.Unknown{What: "task", Name: id}
	}
	is.Task, err = task.Load(filepath.Join(dir, task.FileName))
	is.Asked = is.asked
	return is, err
}

// UndoTask takes the landing of a task back. If the branch can be moved back, it is, and a person is asked about the task again; otherwise
// a new task reverts the landing. The error is a *table.Refusal if there is nothing to undo, or if
// files or another git command in the checkout prevent it.
func (c *Controller) UndoTask(ctx context.Context, by change.Actor, id string) (done view.TaskUndone, err error) {
	ctx = context.WithoutCancel(ctx) // half of it is worse than an answer that is not read
	c.undoing.Lock()
	defer c.undoing.Unlock()
	is, err := c.landingOf(ctx, id, "undo")
	if err != nil {
		return done, err
	}
	no := func(format string, args ...any) (view.TaskUndone, error) {
		return view.TaskUndone{}, &table.Refusal{
			Subject: "task " + id, Event: "undo", State: is.status, Row: "W9", Reason: fmt.Sprintf(format, args...),
		}
	}
	switch {
	case is.pull != "":
		return no("it has a pull request, and what that has merged is on the forge: revert it there, %s, or give a task that does it", is.pull)
	case is.status != string(state.Done) || is.commit == "":
		return no("there is nothing to undo: nothing of it has landed on %s", is.Base)
	case is.undoes != "":
		return no("task %s takes it back already: fairlead diff %[1]s, then fairlead merge %[1]s", is.undoes)
	case is.busy != "":
		return no("task %s lands on %s now; try again when it has landed", is.busy, is.Base)
	}
	b, err := is.TakeBack(ctx, is.commit)
	if conflict, ok := errors.AsType[*task.Conflict](err); ok {
		return no("the revert conflicts with newer changes of %s in %s, so nothing was done; revert commit %.12s by hand, or give a task that takes it back",
			is.Base, strings.Join(conflict.Files, ", "), is.commit)
	} else if blocked, ok := errors.AsType[*task.Blocked](err); ok {
		return no("%s", blocked.Why)
	} else if err != nil {
		return done, fmt.Errorf("take the landing of task %s back: %w", id, err)
	}
	done = view.TaskUndone{ID: id, Base: is.Base, Moved: b.Moved, Checkout: b.Checkout, Because: b.Because}
	if b.Revert == "" {
		return done, c.askTakenBack(ctx, by, is.Task, "its landing was taken back by "+by.ID)
	}
	shown, err := c.startTask(ctx, by, view.TaskFlags{Text: undoText(is), Agent: is.Agent, Base: is.Base},
		taskStart{takesBack: &is.Task, landed: is.commit, revert: b.Revert})
	done.Task = shown.ID
	return done, err
}

// undoText is the text of a task that reverts a landing. Its agent gets it only if the task is sent back.
func undoText(is landing) string {
	return fmt.Sprintf(`Take back: %s

Task %s has landed commit %.12s on %s. This folder has a commit that reverts it. What task %[2]s was to do:

%[5]s`, is.Title(), is.ID, is.commit, is.Base, strings.TrimSpace(is.Text))
}

// askTakenBack asks a person again about a task whose landing was taken back.
func (c *Controller) askTakenBack(ctx context.Context, by change.Actor, t task.Task, why string) error {
	if err := t.Reopen(ctx); err != nil {
		return fmt.Errorf("make the folder of task %s again, to show it (`fairlead undo %[1]s` tries it again): %w", t.ID, err)
	}
	_, err := c.SubmitRun(ctx, by, t.ID, state.Undo{Why: why})
	return err
}

// takenBackBy is the task whose landing a run has reverted and that has not been shown since, and why it is shown; nil: there is none.
func takenBackBy(t *team.Team, r *workflow.Run) (of *workflow.Run, why string) {
	how := howOf(t, string(r.ID)).Task
	if how == nil || how.TakesBack == "" || t.Tasks[string(r.ID)].Landed == "" {
		return nil, ""
	}
	of = t.Runs[how.TakesBack]
	if of == nil || t.Tasks[how.TakesBack].Landed != how.Landed {
		return nil, ""
	}
	return of, "its landing was taken back by task " + string(r.ID)
}

// showTakenBack asks a person about a task whose landing another task has reverted.
func (c *Controller) showTakenBack(ctx context.Context, id, dir, landed string, asked task.Asked, why string) {
	t, err := task.Load(filepath.Join(dir, task.FileName))
	t.Asked = asked
	if err == nil {
		err = cmp.Or(t.NoteTakenBack(ctx, landed), c.askTakenBack(ctx, sessions.ByEngine, t, why))
	}
	if err != nil && ctx.Err() == nil {
		c.log.Warn("a task whose landing was taken back cannot be shown again; `fairlead undo` tries it again", "task", id, "error", err)
	}
}
