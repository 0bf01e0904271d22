package task

import (
	"context"
	"strings"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

// Touched are the files that the task's newest snapshot changes, compared with where its base branch and it parted. No snapshot is made.
func (t Task) Touched(ctx context.Context) ([]string, error) {
	said, err := t.ask(ctx, nil, "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "refs/heads/"+t.Base+"..."+t.Ref(), "--")
	return worktree.Zeroed(said), err
}

// TouchedAt names what Touched depends on for some tasks, by their ids: as long as it is the same, Touched has the same files. A task
// without a snapshot has none. git starts once for each repository.
func TouchedAt(ctx context.Context, all []Task) (map[string]string, error) {
	refs := map[string][]string{}
	for _, t := range all {
		refs[t.Repo] = append(refs[t.Repo], t.Ref(), "refs/heads/"+t.Base)
	}
	at := map[string]string{} // by repository and ref
	for repo, names := range refs {
		said, err := Task{Repo: repo}.ask(ctx, nil, append([]string{"for-each-ref", "--format=%(objectname) %(refname)"}, names...)...)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(said) {
			commit, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
			at[repo+"\x00"+ref] = commit
		}
	}
	found := map[string]string{}
	for _, t := range all {
		own, base := at[t.Repo+"\x00"+t.Ref()], at[t.Repo+"\x00refs/heads/"+t.Base]
		if own != "" && base != "" {
			found[t.ID] = base + "..." + own
		}
	}
	return found, nil
}
