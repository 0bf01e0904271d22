package tasks

import (
	"context"
	"fmt"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Undo takes back what a task has landed, and says how.
func Undo(ctx context.Context, a *cli.App, client *apiclient.Client, id string) error {
	done, err := client.Runs.Undo(ctx, id)
	return answered(a, id, done, err, func() string { return undoneWords(done) })
}

func undoneWords(done view.TaskUndone) string {
	id, base := cli.Plain(done.ID), cli.Plain(done.Base)
	again := fmt.Sprintf("task %s is shown to you again: fairlead diff %[1]s; `fairlead merge %[1]s` lands it again, `fairlead drop %[1]s` ends it", id)
	switch {
	case done.Task != "":
		of := cli.Plain(done.Task)
		return fmt.Sprintf("branch %s was not moved back: %s\ntask %s reverts what %s has landed, and needs you when its checks have run: fairlead diff %[3]s, then fairlead merge %[3]s",
			base, cli.Line(done.Because, cli.ErrorWidth), of, id)
	case done.Moved == "":
		return fmt.Sprintf("branch %s has nothing of task %s any more\n%s", base, id, again)
	}
	said := fmt.Sprintf("branch %s is at %.10s again, without task %s", base, cli.Plain(done.Moved), id)
	if done.Checkout != "" {
		said += ", and its checkout " + cli.Plain(done.Checkout) + " has moved with it"
	}
	return said + "\n" + again
}
