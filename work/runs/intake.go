package runs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/forge"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/internal/backoff"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

const (
	intakeFile    = "intake.json"
	intakeMost    = 5 * time.Minute // between two looks while nothing is found
	intakeLimited = time.Hour       // a rate limit that resets later is looked at before that
)

// byIntake is the actor of tasks that begin because of a label.
var byIntake = change.Actor{Kind: "engine", ID: "intake"}

// TakeIssues makes tasks of labelled issues until Fairlead stops. It asks the forge only if tasks.from is set.
func (c *Controller) TakeIssues(ctx context.Context) {
	warned := ""
	quiet := 0
	for {
		wait := c.opts.Config.Tasks.PR.Poll
		if wait <= 0 {
			wait = config.PollDefault
		}
		if len(c.opts.Config.Tasks.From) > 0 {
			begun, err := c.takeIssues(ctx)
			quiet++
			if len(begun) > 0 {
				quiet = 0
				c.log.Info("tasks have begun because of labelled issues", "tasks", begun)
			}
			wait = backoff.After(wait, max(intakeMost, wait), 1+quiet)
			if fault, ok := errors.AsType[*forge.Fault](err); ok && !fault.Until.IsZero() {
				wait = min(max(wait, time.Until(fault.Until)), intakeLimited)
			}
			if err != nil && ctx.Err() == nil && err.Error() != warned {
				c.log.Warn("labelled issues cannot be taken now; Fairlead tries again", "error", err)
			}
			if warned = ""; err != nil {
				warned = err.Error()
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

func (c *Controller) takeIssues(ctx context.Context) ([]string, error) {
	conf := c.opts.Config
	workspace, err := sessions.SettledDir(conf.Dir)
	if err != nil {
		return nil, err
	}
	t, err := task.Place(ctx, workspace, conf.Tasks.Base)
	if err != nil {
		return nil, err
	}
	t.Remote = conf.Tasks.Remote
	f, err := task.ForgeOf(ctx, t)
	if err != nil {
		return nil, err
	}
	in := task.Intake{File: filepath.Join(workspace, ".fairlead", intakeFile), Most: conf.Tasks.Most, Forge: f}
	for _, from := range conf.Tasks.From {
		in.From = append(in.From, task.Source(from))
	}
	in.Find = func(ctx context.Context, url string) (id string, err error) {
		err = c.loop.View(ctx, func(t *team.Team) {
			for _, run := range t.RunIDs() {
				if how := howOf(t, run); how.Task != nil && how.Task.Issue == url && how.Task.Intake {
					id = run
				}
			}
		})
		return id, err
	}
	in.Active = func(ctx context.Context) (n int, err error) {
		err = c.loop.View(ctx, func(t *team.Team) {
			for id, r := range t.Runs {
				if how := howOf(t, id); how.Task != nil && how.Task.Intake && r.Status() != workflow.IsCompleted &&
					r.Status() != workflow.IsCancelled {
					n++
				}
			}
		})
		return n, err
	}
	in.Begin = func(ctx context.Context, agent, text, url string) (string, error) {
		if err := c.discardUnbegun(ctx, workspace, url); err != nil {
			return "", err
		}
		shown, err := c.startTask(ctx, byIntake, view.TaskFlags{Text: text, Agent: agent, Issue: url}, taskStart{intake: true})
		return shown.ID, err
	}
	return in.Look(ctx)
}

// discardUnbegun removes what is left of a task from an issue whose run never began, because Fairlead ended before.
func (c *Controller) discardUnbegun(ctx context.Context, workspace, url string) error {
	files, err := filepath.Glob(filepath.Join(runsDir(workspace), taskIDPrefix+"*", task.FileName))
	if err != nil {
		return err
	}
	for _, file := range files {
		t, err := task.Load(file)
		if err != nil || t.Issue != url || t.Run != filepath.Dir(file) {
			continue
		}
		known := false
		if err := c.loop.View(ctx, func(team *team.Team) {
			_, archived := team.Archive[t.ID]
			known = archived || team.Runs[t.ID] != nil || c.starting[t.ID]
		}); err != nil {
			return err
		}
		if known {
			continue
		}
		if _, err := t.Remove(ctx); err != nil {
			return err
		}
		if err := os.RemoveAll(t.Run); err != nil {
			return err
		}
	}
	return nil
}
