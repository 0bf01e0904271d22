package task

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/worktree"
)

const (
	commitsTold = 20 // in a hand-over
	linesTold   = 50 // about changed files; the whole difference is in a file, or in the folder
	namesTold   = 10 // of changed files in an error
)

// stat returns git's line for each changed file, and their sum as the last line; none if nothing was changed. Of more
// than some lines it says how many.
func stat(ctx context.Context, t Task, from, to string, most int) ([]string, error) {
	text, err := t.ask(ctx, nil, "diff", "--no-color", "--stat=100", "--no-ext-diff", "--no-textconv", from, to)
	if err != nil || text == "" {
		return nil, err
	}
	lines := strings.Split(text, "\n")
	if more := len(lines) - most; more > 0 {
		lines = append(append(lines[:most-1:most-1], fmt.Sprintf(" and %d more files", more)), lines[len(lines)-1])
	}
	return lines, nil
}

// Looked is what a reviewer gets to see.
type Looked struct {
	Picture
	From string   // the commit that it is compared with
	Stat []string // a line for each changed file, and their sum; none if there is no change
	Diff string   // the file with the whole difference
}

// ForReview writes the difference for a reviewer into a file.
func ForReview(ctx context.Context, t Task, name string) (l Looked, err error) {
	if l.Picture, err = t.Snapshot(ctx); err != nil {
		return l, err
	}
	if l.From, err = t.Before(ctx, l.Commit); err != nil {
		return l, err
	}
	if l.Stat, err = stat(ctx, t, l.From, l.Commit, linesTold); err != nil {
		return l, err
	}
	l.Diff = filepath.Join(t.Run, name)
	if err := os.WriteFile(l.Diff, nil, 0o600); err != nil { // git writes none if there is no change
		return l, err
	}
	_, err = t.ask(ctx, nil, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--output="+l.Diff, l.From, l.Commit)
	return l, err
}

// ChangedSince lists files that differ between a picture and the folder; none if the content is the same.
func ChangedSince(ctx context.Context, t Task, before Picture) ([]string, error) {
	now, err := t.Snapshot(ctx)
	if err != nil || now.Tree == before.Tree {
		return nil, err
	}
	text, err := t.ask(ctx, nil, "diff", "--name-only", "-z", "--no-ext-diff", before.Commit, now.Commit)
	names := worktree.Zeroed(text)
	if more := len(names) - namesTold; more > 0 {
		names = append(names[:namesTold:namesTold], fmt.Sprintf("and %d more", more))
	}
	return names, err
}

// HandOver tells a new conversation what was done in the folder so far; empty if nothing was.
func HandOver(ctx context.Context, t Task) (string, error) {
	p, err := t.Snapshot(ctx)
	if err != nil {
		return "", err
	}
	from, err := t.Before(ctx, p.Commit)
	if err != nil || from == p.Commit {
		return "", err
	}
	head := p.Commit
	if p.Loose {
		head += "^"
	}
	commits, err := t.ask(ctx, nil, "log", "--no-color", "--format=%h %s", fmt.Sprintf("--max-count=%d", commitsTold), from+".."+head)
	if err != nil {
		return "", err
	}
	lines, err := stat(ctx, t, from, p.Commit, linesTold)
	if err != nil {
		return "", err
	}
	if commits == "" {
		commits = "none"
	}
	return fmt.Sprintf("An earlier conversation has worked on this task in this folder, and cannot be continued. Go on from what is there.\n\n"+
		"Commits so far:\n%s\n\nChanged so far, compared with branch %s, committed or not:\n%s\n", commits, t.Base, strings.Join(lines, "\n")), nil
}
