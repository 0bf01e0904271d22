package runs

import (
	"path/filepath"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// Checkout returns the folder in which a run's steps work, if the run has one of its own, and the folder of its reports,
// prompts and artifacts. Without a checkout both are empty.
func Checkout(t *team.Team, run string) (checkout, files string) {
	r := t.Runs[run]
	if r == nil {
		return "", ""
	}
	if checkout = howOf(t, run).checkout(); checkout != "" {
		files = runDir(r)
	}
	return checkout, files
}

func (how howRun) checkout() string {
	if how.Task != nil {
		return how.Task.Tree
	}
	return how.Worktree
}

// isOutside reports whether a run has a checkout that is not in the repository.
func isOutside(repo string, how howRun) bool {
	repo, err := sessions.SettledDir(repo)
	if err != nil || how.checkout() == "" {
		return false
	}
	rel, err := filepath.Rel(repo, how.checkout())
	return err != nil || !filepath.IsLocal(rel)
}
