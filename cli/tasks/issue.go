package tasks

import (
	"context"
	"errors"
	"strings"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/forge"
	"github.com/fairlead-dev/fairlead/task"
	"github.com/fairlead-dev/fairlead/view"
)

// FromIssue fills in the text of a task from an issue on the forge. Without an issue the task needs a text.
func FromIssue(ctx context.Context, a *cli.App, issue string, flags *view.TaskFlags) error {
	if issue == "" {
		if strings.TrimSpace(flags.Text) == "" {
			return &cli.Coded{Code: cli.ExitUsage, Err: errors.New("say what is to be done, or name an issue: fairlead task TEXT, fairlead task --issue 142")}
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
	var fault *forge.Fault
	if errors.As(err, &fault) {
		return &cli.Coded{Code: cli.ExitRefused, Err: err}
	} else if err != nil {
		return err
	}
	flags.Text, flags.Issue = task.IssueText(flags.Text, found), found.URL
	return nil
}
