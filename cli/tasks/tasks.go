// Package tasks has the commands for tasks: give one, look at it, ask for changes, and land it.
//
// A task is a run, so most commands are requests about that run. What a task has changed is read from
// git directly and needs no daemon. A person's comments wait in the run's folder until they are sent.
//
// The one promise: a command says what it did, or what has to be done first.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/forge"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/read/view"
)

const (
	titleWidth   = 60
	textBytesMax = 64 << 10 // of a task's text, as in the API
)

// Start gives a task.
func Start(ctx context.Context, a *cli.App, client *apiclient.Client, flags view.TaskFlags) error {
	if len(flags.Text) > textBytesMax {
		return &cli.Coded{
			Code: cli.ExitUsage,
			Err:  fmt.Errorf("the text has more than %d KiB; put it into a file, and give that with --attach FILE", textBytesMax>>10),
		}
	}
	shown, err := client.Runs.Start(ctx, view.RunFlags{Task: &flags})
	if err != nil {
		return cli.Faulty(err)
	}
	if a.JSON {
		return a.PrintJSON(shown.Task)
	}
	id := cli.Plain(shown.ID)
	_, err = fmt.Fprintf(a.Out,
		"task %s for %s, to land on %s\nlook at it with `fairlead tasks`, `fairlead watch %s` and `fairlead diff %s`\n", id,
		cli.Plain(shown.Task.Agent), cli.Plain(shown.Task.Base), cli.Plain(shown.Task.Agent), id)
	return err
}

// order is the order of the states on the board: what needs a person comes first.
var order = []string{
	view.TaskNeedsYou, view.TaskFailed, view.TaskPROpen, view.TaskLanding, view.TaskReview, view.TaskChecking, view.TaskWorking,
	view.TaskQueued, view.TaskBlocked, view.TaskDone, view.TaskDropped,
}

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
	tasks := tasksOf(all)
	slices.SortStableFunc(tasks, func(x, y *view.TaskView) int {
		return slices.Index(order, x.Status) - slices.Index(order, y.Status)
	})
	team, err := client.Agents(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		shown := map[string]any{"tasks": tasks}
		if team.Hold {
			shown["hold"], shown["hold_note"] = true, team.Note
		}
		return a.PrintJSON(shown)
	}
	if team.Hold {
		fmt.Fprintln(a.Out, a.Paint(cli.Yellow, "the team is held")+cli.OrNote(team.Note)+": nothing new starts until `fairlead unhold`")
	}
	if len(tasks) == 0 {
		return nothing(a)
	}
	table := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "TASK\tSTATUS\tAGENT\tCHANGED\tTITLE\tNEXT")
	for _, t := range tasks {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s ago\t%s\t%s\n", cli.Plain(t.ID), Words(t.Status), cli.Plain(t.Agent),
			cli.Ago(max(0, time.Since(t.UpdatedAt))), cli.Line(t.Title, titleWidth), next(t))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, line := range overlaps(tasks) {
		if _, err := fmt.Fprintln(a.Out, line); err != nil {
			return err
		}
	}
	for _, t := range tasks {
		if t.FetchStopped != "" { // it is the same for all
			_, err := fmt.Fprintf(a.Out, "tasks.fetch has stopped: %s; it goes on after `fairlead reload`, or a `fairlead task sync %s` that works\n",
				cli.Line(t.FetchStopped, cli.ErrorWidth), cli.Plain(t.ID))
			return err
		}
	}
	return nil
}

// tasksOf are the tasks among some runs.
func tasksOf(all []view.RunView) []*view.TaskView {
	tasks := []*view.TaskView{}
	for i := range all {
		if all[i].Task != nil {
			tasks = append(tasks, all[i].Task)
		}
	}
	return tasks
}

// Words is a status for people: needs you instead of needs_you.
func Words(status string) string { return strings.ReplaceAll(status, "_", " ") }

func nothing(a *cli.App) error {
	return a.Say(map[string]any{"tasks": []string{}}, "no tasks; give one with `fairlead task TEXT`")
}

// next says what a person can do about a task, or what it waits for.
func next(t *view.TaskView) string {
	id, why := cli.Plain(t.ID), cli.Line(t.Why, cli.ErrorWidth)
	switch {
	case t.Checkout != "":
		return checkedOutWords(t)
	case t.Status == view.TaskDropped && t.PullRequest == "":
		return "`fairlead task restore " + id + "` brings it back"
	case t.FailedStep == task.StepLand:
		return cli.Plain(t.FailedStep) + " failed: " + why + "; then fairlead merge " + id
	case t.FailedStep != "":
		return cli.Plain(t.FailedStep) + " failed: " + why + "; then fairlead run resume " + id
	case t.Status == view.TaskPROpen:
		return cli.Plain(t.PullRequest)
	case t.Unlanded():
		return why + ": fairlead diff " + id + "; " + cli.Line(t.WaysOn(), cli.ErrorWidth)
	case t.Asked != nil && nothingNew(t) != "":
		return nothingNew(t) + "; fairlead request " + id + " TEXT, or fairlead drop " + id + "; fairlead diff " + id + " shows it"
	case t.Asked != nil, t.Status == view.TaskNeedsYou && why == "":
		if why != "" {
			why = "; shown again: " + why
		}
		return "fairlead diff " + id + ", then fairlead merge " + id + " or fairlead request " + id + why
	default:
		return why
	}
}

// nothingNew says why an approval of what is shown is not what a person wants; empty: it may be.
func nothingNew(t *view.TaskView) string {
	switch {
	case t.FilesChanged == 0:
		return "0 files changed"
	case t.Asked.Unchanged:
		return "nothing changed since your request"
	}
	return ""
}

// AnswerWords are the commands that answer a question about a task. Those that fit what it shows come first.
func AnswerWords(t *view.TaskView) string {
	id := cli.Plain(t.ID)
	if t.Asked != nil && nothingNew(t) != "" {
		return fmt.Sprintf("fairlead request %s \"…\", or fairlead drop %[1]s; fairlead diff %[1]s and fairlead merge %[1]s work, too", id)
	}
	return fmt.Sprintf("fairlead diff %s; then fairlead merge %[1]s, or fairlead request %[1]s \"…\"", id)
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

// waitsForApproval reports whether a task waits for a person to look at it.
func waitsForApproval(r view.RunView) bool {
	return r.Task.Status != view.TaskDropped && slices.ContainsFunc(r.Steps, func(s view.StepView) bool {
		return s.ID == task.StepApprove && s.Status == string(workflow.Waiting)
	})
}

// Merge approves a task, or lands it again after landing failed, and waits until it has landed or needs a person
// again. tree names what the person looked at; empty: the approval is for what is asked when it arrives.
func Merge(ctx context.Context, a *cli.App, client *apiclient.Client, id string, yes api.MergeBody, wait bool) error {
	return merge(ctx, a, client, id, yes, wait, nil)
}

// merge is Merge; pull is the task if it is to land as a pull request from now on, which a refused approval does not change.
func merge(ctx context.Context, a *cli.App, client *apiclient.Client, id string, yes api.MergeBody, wait bool, pull *task.Task) error {
	r, err := shownTask(ctx, client, id)
	if err != nil {
		return err
	}
	name := cli.Plain(id)
	switch {
	case r.Task.Status == view.TaskDone:
		_, err := fmt.Fprintf(a.Out, "task %s has landed already\n", name)
		return err
	case r.Task.Status == view.TaskPROpen:
		return &cli.Coded{
			Code: cli.ExitRefused,
			Err:  fmt.Errorf("task %s has a pull request; merge it there, and the task is done: %s", name, cli.Plain(pullURL(r))),
		}
	case r.Task.Status == view.TaskLanding: // it is approved already
	case r.Task.FailedStep != task.StepLand && !waitsForApproval(r):
		return notNow(r)
	default:
		was := ""
		if pull != nil { // before the order: the landing reads it
			was, pull.How = pull.How, task.PR
			if err := pull.Save(); err != nil {
				return err
			}
		}
		if _, err := client.Runs.Merge(ctx, id, yes); err != nil {
			err = cli.Faulty(err)
			if pull != nil && cli.CodeOf(err) == cli.ExitRefused { // after any other error the approval may have been taken
				pull.How = was
				err = errors.Join(err, pull.Save())
			}
			return needsYes(a, r, yes, err)
		}
	}
	if !wait {
		_, err := fmt.Fprintf(a.Out, "task %s is landing\n", name)
		return err
	}
	return follow(ctx, a, client, id)
}

// needsYes prints the governing files of a task for a program, if that is why its approval was refused.
func needsYes(a *cli.App, r view.RunView, yes api.MergeBody, err error) error {
	asked := r.Task.Asked
	if !a.JSON || asked == nil || asked.GoverningHash == yes.Governing || cli.CodeOf(err) != cli.ExitRefused {
		return err
	}
	return errors.Join(a.PrintJSON(map[string]any{"task": r.ID, "governing": asked.Governing, "governing_hash": asked.GoverningHash}), err)
}

// notNow is the error for a task that does not wait for a person, or failed elsewhere.
func notNow(r view.RunView) error {
	name := cli.Plain(r.ID)
	if r.Task.FailedStep == task.StepLand {
		return &cli.Coded{
			Code: cli.ExitRefused,
			Err:  fmt.Errorf("task %s is approved and has not landed: %s; land it with `fairlead merge %s`, look at it again with `fairlead run resume %s --start-at-step approve`, or end it with `fairlead drop %s`", name, cli.Line(r.Task.Why, cli.ErrorWidth), name, name, name),
		}
	}
	if r.Task.Status == view.TaskDropped {
		return &cli.Coded{
			Code: cli.ExitRefused,
			Err:  fmt.Errorf("task %s was dropped; bring it back with `fairlead task restore %s`", name, name),
		}
	}
	if step := r.Task.FailedStep; step != "" {
		return &cli.Coded{
			Code: cli.ExitRefused,
			Err:  fmt.Errorf("task %s: step %s failed; see `fairlead run show %s`, repair the cause, and continue with `fairlead run resume %s`", name, cli.Plain(step), name, name),
		}
	}
	return &cli.Coded{
		Code: cli.ExitRefused,
		Err:  fmt.Errorf("task %s is %s and does not wait for you; `fairlead tasks` shows what it does", name, Words(r.Task.Status)),
	}
}

// FromIssue fills in the text of a task from an issue on the forge. Without an issue the task needs a text.
func FromIssue(ctx context.Context, a *cli.App, issue string, flags *view.TaskFlags) error {
	if issue == "" {
		if strings.TrimSpace(flags.Text) == "" {
			return &cli.Coded{
				Code: cli.ExitUsage,
				Err:  errors.New("give the task, or name an issue: fairlead task TEXT, fairlead task --issue 142"),
			}
		}
		return nil
	}
	repo, number, err := forge.ParseIssue(issue)
	if err != nil {
		return &cli.Coded{Code: cli.ExitUsage, Err: err}
	}
	conf, err := a.Load()
	if err != nil {
		return err
	}
	var f forge.Forge
	if repo.Host != "" {
		f, err = forge.Of(repo)
	} else {
		f, err = task.ForgeOf(ctx, task.Task{Repo: a.Dir, Remote: conf.Tasks.Remote})
	}
	if err != nil {
		return &cli.Coded{Code: cli.ExitRefused, Err: err}
	}
	found, err := f.Issue(ctx, number)
	if _, ok := errors.AsType[*forge.Fault](err); ok {
		return &cli.Coded{Code: cli.ExitRefused, Err: err}
	} else if err != nil {
		return err
	}
	flags.Text, flags.Issue = task.IssueText(flags.Text, found), found.URL
	return nil
}

// Attach reads the files that are given with a task. The daemon checks their sizes and their number.
func Attach(paths []string) (all []view.TaskAttachment, err error) {
	for _, path := range paths {
		one, err := attachment(path)
		if err != nil {
			return nil, &cli.Coded{Code: cli.ExitUsage, Err: err}
		}
		all = append(all, one)
	}
	return all, nil
}

func attachment(path string) (one view.TaskAttachment, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return one, fmt.Errorf("--attach: %w", err)
	}
	if !info.Mode().IsRegular() {
		return one, fmt.Errorf("--attach: %s is not a file", cli.Line(path, cli.PathWidth))
	}
	file, err := os.Open(path)
	if err != nil {
		return one, fmt.Errorf("--attach: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, driver.ImageBytesMax+1)) // a text has a lower limit
	if err != nil {
		return one, fmt.Errorf("--attach: %w", err)
	}
	one.Name = filepath.Base(path)
	switch _, err := driver.ImageType(data); {
	case err == nil:
		one.Image = data
	case !errors.Is(err, driver.ErrNotImage):
		return one, fmt.Errorf("--attach: %s cannot be attached: it is %w", cli.Line(path, cli.PathWidth), err)
	case !utf8.Valid(data):
		return one, fmt.Errorf("--attach: %s is neither a text file nor a PNG, JPEG, GIF or WebP image; put it into the repository, or name its path in the text", cli.Line(path, cli.PathWidth))
	default:
		one.Text = string(data)
	}
	return one, nil
}
