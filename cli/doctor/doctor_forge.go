package doctor

import (
	"context"
	"fmt"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/task"
)

// lookAtForge says whether the program for pull requests and issues is there and signed in. The answer needs the
// network, so it is asked only if the configuration needs it.
func lookAtForge(ctx context.Context, a *cli.App, conf *config.Config) Finding {
	f, err := task.ForgeOf(ctx, task.Task{Repo: a.Dir, Remote: conf.Tasks.Remote})
	if err != nil {
		return Finding{About: "pull requests", What: err.Error(), Do: "tasks.land and tasks.from of fairlead.yaml need it"}
	}
	who, err := f.SignedIn(ctx)
	if err != nil {
		return Finding{About: "pull requests", What: err.Error(), Do: fmt.Sprintf("`%s auth status` says more", f.Program())}
	}
	return Finding{OK: true, About: "pull requests", What: fmt.Sprintf("%s is signed in as %s", f.Program(), who)}
}
