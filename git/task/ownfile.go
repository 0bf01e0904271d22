package task

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

// stateName is the name of an agent's state file, as in package agentfile.
const stateName = "agent_state.json"

// ownFile reports whether a path of the repository is one that Fairlead writes while it runs. Such a file may be tracked by
// accident. It changes at any time, so it is no work of a task, and does not stop one from landing.
func (t Task) ownFile(name string) bool {
	for _, dir := range []string{".fairlead", ".agents/runs", ".agents/archive", ".agents/worktrees"} {
		if strings.HasPrefix(name, path.Join(filepath.ToSlash(t.Prefix), dir)+"/") {
			return true
		}
	}
	dir, base := path.Split(name)
	return slices.Contains(t.Homes, path.Clean("./"+dir)) &&
		(base == stateName || strings.HasPrefix(base, "."+stateName+".") || strings.HasPrefix(base, stateName+".corrupt-"))
}

// asAsked is a picture of the folder now, to be compared with what was shown: without changes of Fairlead's own files, too.
func (t Task) asAsked(ctx context.Context) (Picture, error) {
	p, err := t.Snapshot(ctx)
	if err != nil || !(Review{t}).Has(ctx, t.Asked.From) { // applied says what is to be done without that commit
		return p, err
	}
	return withoutOwn(ctx, t, p, t.Asked.From)
}

// withoutOwn is a picture without changes of Fairlead's own files: they are as in the commit that it is compared with.
func withoutOwn(ctx context.Context, t Task, p Picture, from string) (Picture, error) {
	said, err := t.ask(ctx, nil, "diff", "--raw", "--no-abbrev", "--no-renames", "-z", "--no-ext-diff", from, p.Commit)
	if err != nil {
		return p, err
	}
	var back strings.Builder
	fields := worktree.Zeroed(said)
	for i := 0; i+1 < len(fields); i += 2 { // `:mode mode id id status`, and the name
		if is := strings.Fields(fields[i]); len(is) == 5 && t.ownFile(fields[i+1]) {
			fmt.Fprintf(&back, "%s %s\t%s\x00", strings.TrimPrefix(is[0], ":"), is[2], fields[i+1]) // mode 0 removes it
		}
	}
	if back.Len() == 0 {
		return p, nil
	}
	index := filepath.Join(t.Run, "own.index")
	defer os.Remove(index)
	env := []string{"GIT_INDEX_FILE=" + index}
	if _, err := t.ask(ctx, env, "read-tree", p.Commit); err != nil {
		return p, err
	}
	if _, err := t.own().Run(ctx, worktree.GitWorkMax, env, writes(back.String()), "update-index", "-z", "--index-info"); err != nil {
		return p, err
	}
	if p.Tree, err = t.ask(ctx, env, "write-tree"); err != nil {
		return p, err
	}
	p.Commit, err = t.commit(ctx, byFairlead, p.Tree, t.Title(), p.Commit)
	return p, err
}
