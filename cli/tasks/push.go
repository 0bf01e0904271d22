package tasks

import (
	"context"
	"fmt"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Push pushes a task's branch to a remote, and says what it has now.
func Push(ctx context.Context, a *cli.App, client *apiclient.Client, id string, to api.PushBody) error {
	done, err := client.Runs.Push(ctx, id, to)
	return answered(a, id, done, err, func() string { return pushedWords(done) })
}

func pushedWords(done view.TaskPushed) string {
	what := "what was shown to you last"
	if !done.Shown {
		what = "what its folder has now, which was not shown to you yet"
	}
	said := fmt.Sprintf("branch %s of %s", cli.Plain(done.Branch), cli.Plain(done.Remote))
	if done.There {
		return fmt.Sprintf("%s has it already, with commit %.10s: %s", said, cli.Plain(done.Commit), what)
	}
	return fmt.Sprintf("pushed commit %.10s to %s: %s", cli.Plain(done.Commit), said, what)
}
