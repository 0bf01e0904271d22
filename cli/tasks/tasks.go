// Package tasks has the commands for tasks: give one, look at it, ask for changes, and land it.
//
// A task is a run, so most commands are requests about that run. What a task has changed is read from
// git directly and needs no daemon. A person's comments wait in the run's folder until they are sent.
//
// The promise: a command says what it did, or what has to be done first.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/task"
	"github.com/fairlead-dev/fairlead/view"
)

const (
	textWidth = 60
	noteMax   = 900 // of an answer's note; the whole text is in a file
)

// Start gives a task.
func Start(ctx context.Context, a *cli.App, client *apiclient.Client, flags view.TaskFlags) error {
	shown, err := client.Runs.Start(ctx, view.RunFlags{Task: &flags})
	if err != nil {
		return cli.Faulty(err)
	}
	if a.JSON {
		return a.PrintJSON(shown)
	}
	if shown.Task == nil {
		return errors.New("the daemon knows no tasks; it may be older than this program: fairlead down, fairlead up")
	}
	id := cli.Plain(shown.ID)
	_, err = fmt.Fprintf(a.Out, "task %s for %s, to land on %s\nlook at it with `fairlead tasks`, `fairlead watch %s` and `fairlead diff %s`\n", id, cli.Plain(shown.Task.Agent), cli.Plain(shown.Task.Base), cli.Plain(shown.Task.Agent), id)
	return err
}

// order is the order of the states on the board: what needs a person comes first.
var order = []string{view.TaskNeedsYou, view.TaskLanding, view.TaskPROpen, view.TaskWorking, view.TaskQueued, view.TaskDone, view.TaskDropped}

// List prints the board.
func List(ctx context.Context, a *cli.App) error {
	client, err := a.DialToRead(ctx)
	if none := (*apiclient.NoDaemon)(nil); errors.As(err, &none) {
		return nothing(a)
	}
	if err != nil {
		return err
	}
	defer client.Close()
	all, err := client.Runs.List(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(r view.RunView) bool { return r.Task == nil })
	slices.SortStableFunc(all, func(x, y view.RunView) int {
		return slices.Index(order, x.Task.State) - slices.Index(order, y.Task.State)
	})
	if a.JSON {
		return a.PrintJSON(map[string]any{"tasks": all})
	}
	if len(all) == 0 {
		return nothing(a)
	}
	table := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "TASK\tSTATE\tAGENT\tCHANGED\tTEXT\tNEXT")
	for _, r := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s ago\t%s\t%s\n", cli.Plain(r.ID), r.Task.State, cli.Plain(r.Task.Agent), cli.Ago(max(0, time.Since(r.UpdatedAt))), cli.Line(r.Task.Text, textWidth), next(ctx, client, r))
	}
	return table.Flush()
}

func nothing(a *cli.App) error {
	if a.JSON {
		return a.PrintJSON(map[string]any{"tasks": []string{}})
	}
	_, err := fmt.Fprintln(a.Out, "no tasks; give one with `fairlead task TEXT`")
	return err
}

// next says what a person can do about a task.
func next(ctx context.Context, client *cli.Reader, r view.RunView) string {
	id := cli.Plain(r.ID)
	switch {
	case r.Task.State == view.TaskPROpen:
		return cli.Plain(r.Task.PullRequest)
	case r.Task.State != view.TaskNeedsYou:
		return ""
	case r.Status != string(workflow.IsFailed):
		return "fairlead diff " + id + ", then fairlead merge " + id + " or fairlead request " + id
	}
	whole, err := client.Runs.Show(ctx, r.ID)
	if err != nil {
		return "fairlead run show " + id
	}
	step, why := failedStep(whole)
	again := "fairlead run resume " + id
	if step == task.StepLand {
		again = "fairlead merge " + id
	}
	return cli.Plain(step) + " failed: " + cli.Line(why, cli.ErrorWidth) + "; then " + again
}

// Open reads the task with an id.
func Open(a *cli.App, id string) (task.Task, error) {
	if !filepath.IsLocal(id) || strings.ContainsRune(id, filepath.Separator) {
		return task.Task{}, unknown(id)
	}
	t, err := task.Load(filepath.Join(a.Dir, ".agents", "runs", id, task.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return t, unknown(id)
	}
	return t, err
}

func unknown(id string) error {
	return &cli.Coded{Code: cli.ExitUsage, Err: fmt.Errorf("there is no task %s; `fairlead tasks` lists them", cli.Line(id, 60))}
}

// shownTask asks the daemon for a task.
func shownTask(ctx context.Context, client *apiclient.Client, id string) (view.RunView, error) {
	r, err := client.Runs.Show(ctx, id)
	var p *api.Problem
	if errors.As(err, &p) && p.Status == http.StatusNotFound || err == nil && r.Task == nil {
		return r, unknown(id)
	}
	return r, err
}

// failedStep is the step of a failed run that a person can do something about; empty: none failed.
func failedStep(r view.RunView) (id, why string) {
	for _, s := range r.Steps {
		if s.Status == string(workflow.Failed) {
			return s.ID, s.LastError
		}
	}
	return "", ""
}

// Merge approves a task, or lands it again after landing failed, and waits until it has landed or needs a person
// again.
func Merge(ctx context.Context, a *cli.App, client *apiclient.Client, id string, wait bool) error {
	r, err := shownTask(ctx, client, id)
	if err != nil {
		return err
	}
	name := cli.Plain(id)
	switch step, _ := failedStep(r); {
	case r.Task.State == view.TaskDone:
		_, err := fmt.Fprintf(a.Out, "task %s has landed already\n", name)
		return err
	case r.Task.State == view.TaskPROpen:
		return &cli.Coded{Code: cli.ExitRefused, Err: fmt.Errorf("task %s has a pull request; merge it there, and the task is done: %s", name, cli.Plain(pullURL(r)))}
	case r.Task.State == view.TaskNeedsYou && r.Status == string(workflow.IsFailed) && step == task.StepLand:
		_, err = client.Runs.Resume(ctx, id, view.RunFlags{})
	case r.Task.State == view.TaskNeedsYou && r.Status != string(workflow.IsFailed):
		_, err = client.Runs.Answer(ctx, id, task.StepApprove, view.StepAnswer{})
	default:
		return notNow(r, step)
	}
	if err != nil {
		return cli.Faulty(err)
	}
	if !wait {
		_, err := fmt.Fprintf(a.Out, "task %s is landing\n", name)
		return err
	}
	return follow(ctx, a, client, id)
}

// notNow is the error for a task that does not wait for a person, or failed elsewhere.
func notNow(r view.RunView, step string) error {
	name := cli.Plain(r.ID)
	if step != "" {
		return &cli.Coded{Code: cli.ExitRefused, Err: fmt.Errorf("task %s: step %s failed; see `fairlead run show %s`, repair the cause, and continue with `fairlead run resume %s`", name, cli.Plain(step), name, name)}
	}
	return &cli.Coded{Code: cli.ExitRefused, Err: fmt.Errorf("task %s is %s and does not wait for you; `fairlead tasks` shows what it does", name, r.Task.State)}
}
