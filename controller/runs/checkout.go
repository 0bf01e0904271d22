package runs

import "github.com/fairlead-dev/fairlead/team"

// Checkout returns the folder in which a run's steps work, if the run has one of its own, and the folder of its reports,
// prompts and artifacts. Without a checkout both are empty.
func Checkout(t *team.Team, run string) (checkout, files string) {
	r := t.Runs[run]
	if r == nil {
		return "", ""
	}
	switch how := howOf(t, run); {
	case how.Task != nil:
		return how.Task.Tree, runDir(r)
	case how.Worktree != "":
		return how.Worktree, runDir(r)
	}
	return "", ""
}
