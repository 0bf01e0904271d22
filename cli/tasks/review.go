package tasks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/task"
	"github.com/fairlead-dev/fairlead/view"
)

// Diff shows what a task has changed so far, with git's own pager on a terminal.
func Diff(ctx context.Context, a *cli.App, id string, stat bool) error {
	t, err := Open(a, id)
	if err != nil {
		return err
	}
	commit, err := t.Newest(ctx)
	if err != nil {
		return err
	}
	from, err := t.Before(ctx, commit)
	if err != nil {
		return err
	}
	args := []string{"-C", t.Repo}
	if !cli.Tty(a.Out) {
		args = append(args, "--no-pager")
	}
	args = append(args, "diff", "--no-ext-diff", "--no-textconv")
	if stat {
		args = append(args, "--stat")
	}
	cmd := exec.CommandContext(ctx, "git", append(args, from, commit, "--")...) //nolint:gosec // two commits
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, a.Out, a.Err
	return cmd.Run()
}

// Comment keeps a comment on a line until the next request.
func Comment(ctx context.Context, a *cli.App, client *apiclient.Client, id, where, text string) error {
	if _, err := shownTask(ctx, client, id); err != nil {
		return err
	}
	var err error
	file, number, ok := strings.Cut(where, ":")
	line := 0
	if ok {
		if line, err = strconv.Atoi(number); err != nil || line < 1 {
			return &cli.Coded{Code: cli.ExitUsage, Err: fmt.Errorf("%s: the line is a number from 1, as in upload.go:40", cli.Line(where, cli.PathWidth))}
		}
	}
	if !filepath.IsLocal(file) {
		return &cli.Coded{Code: cli.ExitUsage, Err: fmt.Errorf("%s is not a file of the repository; name it as `fairlead diff` does", cli.Line(file, cli.PathWidth))}
	}
	t, err := Open(a, id)
	if err != nil {
		return err
	}
	body := api.CommentBody{File: filepath.ToSlash(filepath.Clean(file)), Line: line, Text: strings.TrimSpace(text)}
	if body.Quote, body.Old, err = (task.Review{Task: t}).Line(ctx, body.File, line); err != nil {
		return &cli.Coded{Code: cli.ExitUsage, Err: err}
	}
	all, err := client.Runs.Comment(ctx, id, body)
	if err != nil {
		return cli.Faulty(err)
	}
	_, err = fmt.Fprintf(a.Out, "%s for task %s; `fairlead request %s` sends them\n", cli.HowMany(len(all), "comment", "comments"), cli.Plain(id), cli.Plain(id))
	return err
}

// Request sends the comments and a text back to the agent.
func Request(ctx context.Context, a *cli.App, client *apiclient.Client, id, text string) error {
	r, err := shownTask(ctx, client, id)
	if err != nil {
		return err
	}
	if !waitsForApproval(r) {
		return notNow(r)
	}
	text = strings.TrimSpace(text)
	if all, err := client.Runs.Comments(ctx, id); err != nil {
		return err
	} else if text == "" && len(all) == 0 {
		return &cli.Coded{Code: cli.ExitUsage, Err: fmt.Errorf("there is nothing to send; write a text, or comment first: fairlead comment %s FILE:LINE TEXT", cli.Plain(id))}
	}
	if _, err := client.Runs.Request(ctx, id, api.RequestBody{Text: text}); err != nil {
		return cli.Faulty(err)
	}
	_, err = fmt.Fprintf(a.Out, "task %s goes back to %s\n", cli.Plain(id), cli.Plain(r.Task.Agent))
	return err
}

// Drop cancels a task and removes its folder. Its content stays under a hidden ref.
func Drop(ctx context.Context, a *cli.App, client *apiclient.Client, id string) error {
	t, err := Open(a, id)
	if err != nil {
		return err
	}
	done, err := client.Runs.Drop(ctx, id)
	ref, p := done.Ref, (*api.Problem)(nil)
	if errors.As(err, &p) && p.Status == http.StatusNotFound { // the daemon died before the run began, or the run is archived
		ref, err = t.Remove(ctx)
	}
	if err != nil {
		return cli.Faulty(err)
	}
	_, err = fmt.Fprintf(a.Out, "the folder of task %s is removed; what was written is in %s: git show --stat %s\n", cli.Plain(id), ref, ref)
	return err
}

// follow waits until a task has landed, or needs a person again.
func follow(ctx context.Context, a *cli.App, client *apiclient.Client, id string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The stream begins with an earlier change, so that the task is looked at once more when the stream is there.
	changed, ended := client.Changed(ctx, apiclient.EventsQuery{Tail: 1})
	name, shown := cli.Plain(id), ""
	for {
		r, err := client.Runs.Show(ctx, id)
		if err != nil {
			return err
		}
		if line := fmt.Sprintf("task %s: %s\n", name, cli.Line(r.Task.Why, cli.ErrorWidth)); r.Task.Status == view.TaskLanding && len(r.Task.Why) > 0 && line != shown {
			fmt.Fprint(a.Err, line)
			shown = line
		}
		switch {
		case r.Task.Status == view.TaskPROpen:
			return sayPull(a, r)
		case r.Task.Status == view.TaskDone:
			said := ""
			for _, s := range r.Steps {
				if s.ID == task.StepLand && len(s.Logs) > 0 {
					said = ": " + cli.Line(s.Logs[0], cli.ErrorWidth)
				}
			}
			_, err := fmt.Fprintf(a.Out, "task %s has landed%s\n", name, said)
			return err
		case r.Status == string(workflow.IsFailed):
			return &cli.Coded{Code: cli.ExitFailed, Err: fmt.Errorf("task %s has not landed: %s: %s", name, cli.Plain(r.Task.FailedStep), cli.Line(r.Task.Why, cli.ErrorWidth))}
		case r.Task.Status != view.TaskLanding:
			for _, s := range r.Steps {
				if s.ID == task.StepLand && s.LastError != "" {
					return &cli.Coded{Code: cli.ExitFailed, Err: fmt.Errorf("task %s has not landed and went back to %s: %s", name, cli.Plain(r.Task.Agent), cli.Line(s.LastError, cli.ErrorWidth))}
				}
			}
			if r.Task.Status == view.TaskDropped {
				return &cli.Coded{Code: cli.ExitCancelled, Err: fmt.Errorf("task %s was dropped", name)}
			}
		}
		select {
		case <-changed:
		case err := <-ended:
			return err
		}
	}
}

// pull does one round of a task's pull request, and returns fields of the step's report.
func pull(ctx context.Context, a *cli.App, t task.Task) (map[string]any, error) {
	f, err := task.ForgeOf(ctx, t)
	if err != nil {
		return nil, err
	}
	round, _ := strconv.Atoi(os.Getenv(task.RoundEnv)) // a workflow of one's own has it, too; 0 is the first round
	look, err := task.PullRequest(ctx, t, a.Out, f, round, time.Now())
	if err != nil {
		return nil, err
	}
	metrics := map[string]string{view.MetricPull: string(look.Outcome)}
	if look.Pull.URL != "" {
		metrics[view.MetricPullURL] = look.Pull.URL
	}
	if look.Fault != "" {
		metrics["waits_for"] = string(look.Fault)
	}
	fields := map[string]any{"metrics": metrics, "logs": view.Some(look.Said)}
	switch look.Outcome {
	case task.Waits:
		fields["again_in_seconds"] = max(1, int(look.Again.Round(time.Second)/time.Second))
	case task.Returns:
		fields["gate_failure"] = look.Why
	case task.Merged:
		metrics["landed_commit"] = look.Commit
	case task.Closed, task.Nothing:
	}
	for _, line := range look.Said {
		if _, err := fmt.Fprintln(a.Out, cli.Plain(line)); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// published shows the content that has passed the checks for a pull request whose branch a person has approved: no
// person is asked about it again. It returns fields of the step's report; the workflow's step approve reads them.
func published(ctx context.Context, t task.Task) (map[string]any, error) {
	if t.How != task.PR || t.Ask == task.AskAlways {
		return nil, nil
	}
	known, err := task.LoadPull(t)
	if err != nil || known.Number == 0 {
		return nil, err
	}
	_, err = t.Show(ctx, t.Run)
	return map[string]any{"metrics": map[string]string{view.MetricPullURL: known.URL}}, err
}

// Pull approves a task and lands it as a pull request, whatever its configuration says.
func Pull(ctx context.Context, a *cli.App, client *apiclient.Client, id string, wait bool) error {
	t, err := Open(a, id)
	if err != nil {
		return err
	}
	if t.How != task.PR {
		if _, err := task.ForgeOf(ctx, t); err != nil {
			if blocked := (*task.Blocked)(nil); errors.As(err, &blocked) {
				return &cli.Coded{Code: cli.ExitRefused, Err: err}
			}
			return err
		}
		r, err := shownTask(ctx, client, id)
		if err != nil {
			return err
		}
		if !waitsForApproval(r) {
			return notNow(r)
		}
		t.How = task.PR
		if err := t.Save(); err != nil {
			return err
		}
	}
	return Merge(ctx, a, client, id, wait)
}

// pullURL is the address of a task's pull request; empty: there is none yet.
func pullURL(r view.RunView) string {
	for _, s := range r.Steps {
		if url := s.Metrics[view.MetricPullURL]; s.ID == task.StepLand && url != "" {
			return url
		}
	}
	return ""
}

func sayPull(a *cli.App, r view.RunView) error {
	name := cli.Plain(r.ID)
	_, err := fmt.Fprintf(a.Out, "task %s has the pull request %s\nits checks and comments come back to %s by themselves; the task ends when it is merged or closed there\n",
		name, cli.Plain(pullURL(r)), cli.Plain(r.Task.Agent))
	return err
}
