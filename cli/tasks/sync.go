package tasks

import (
	"context"
	"fmt"
	"strings"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Sync fetches the remote for a task, and says what has come and what to do with it.
func Sync(ctx context.Context, a *cli.App, client *apiclient.Client, id string) error {
	done, err := client.Runs.Sync(ctx, id)
	return answered(a, id, done, err, func() string { return strings.Join(syncedLines(done, cli.Plain(id)), "\n") })
}

func syncedLines(done view.TaskSync, id string) (lines []string) {
	for _, b := range done.Branches {
		said := "it was not known here before"
		if !b.Made {
			said = cli.HowMany(b.New, "new commit", "new commits")
		}
		if b.Lost > 0 {
			said += fmt.Sprintf("; it was rewritten, and has lost %d", b.Lost)
		}
		lines = append(lines, cli.Plain(b.Name)+": "+said)
	}
	if done.More > 0 {
		lines = append(lines, fmt.Sprintf("and %s more", cli.HowMany(done.More, "branch", "branches")))
	}
	remote, base := cli.Plain(done.Remote), cli.Plain(done.Base)
	if len(lines) == 0 {
		lines = append(lines, "there is nothing new on "+remote)
	}
	theirs := remote + "/" + base
	has := "the base of task " + id + ", " + base + ","
	switch {
	case done.Behind < 0:
		return append(lines, fmt.Sprintf("%s is not fetched from %s; publish it with `git push %s %s` if it is to be there", has, remote, remote, base))
	case done.Behind == 0:
		return append(lines, has+" has all commits of "+theirs)
	}
	said := fmt.Sprintf("%s is %s behind %s", has, cli.HowMany(done.Behind, "commit", "commits"), theirs)
	how := fmt.Sprintf("if it is checked out, `git merge --ff-only %s` moves it, otherwise `git fetch . %s:%s`", theirs, theirs, base)
	if done.Ahead > 0 {
		said += fmt.Sprintf(" and has %d of its own", done.Ahead)
		how = fmt.Sprintf("merge them with `git merge %s` where it is checked out", theirs)
	}
	return append(lines, said+"; "+how, fmt.Sprintf("in the task's folder `git fetch origin refs/remotes/%s` brings them before that", theirs))
}
