package task

import (
	"context"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

// Touched are the files that the task's newest snapshot changes, compared with where its base branch and it parted. No snapshot is made.
func (t Task) Touched(ctx context.Context) ([]string, error) {
	said, err := t.ask(ctx, nil, "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "refs/heads/"+t.Base+"..."+t.Ref(), "--")
	return worktree.Zeroed(said), err
}
