package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

const commitsMax = 200 // of one task

var commitID = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

// Review is a task as a person looks at it: its changes by round and by commit, its checks, and the comments.
type Review struct{ Task }

// Round is what a person was shown once.
type Round struct {
	Number int
	Commit string
}

// Commit is one commit of a task.
type Commit struct {
	ID, Author, Subject string
	At                  time.Time
}

// roundRef keeps what was shown in a round. The newest one is also shownRef.
func (t Review) roundRef(number int) string { return fmt.Sprintf("%s%s.shown.%d", refs, t.ID, number) }

// Rounds returns what was shown, the oldest first.
func (t Review) Rounds(ctx context.Context) ([]Round, error) {
	said, err := t.ask(ctx, nil, "for-each-ref", "--format=%(objectname) %(refname)", t.roundRefs())
	if err != nil || said == "" {
		return nil, err
	}
	var all []Round
	for line := range strings.Lines(said) {
		commit, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(name[strings.LastIndexByte(name, '.')+1:]); err == nil {
			all = append(all, Round{n, commit})
		}
	}
	slices.SortFunc(all, func(a, b Round) int { return a.Number - b.Number })
	return all, nil
}

func (t Review) roundRefs() string { return refs + t.ID + ".shown.*" }

// Has reports whether the repository has some commits.
func (t Review) Has(ctx context.Context, ids ...string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool {
		_, err := t.ask(ctx, nil, "cat-file", "-e", id+"^{commit}")
		return commits(id) != nil || err != nil
	})
}

// ShownCommit is what was shown last; empty: nothing was.
func (t Review) ShownCommit(ctx context.Context) (string, error) {
	commit, err := t.ask(ctx, nil, "rev-parse", "--verify", "--quiet", t.shownRef()+"^{commit}")
	if worktree.GitHasNone(err) {
		return "", nil
	}
	return commit, err
}

// Kept is the newest picture that was taken of the folder.
func (t Review) Kept(ctx context.Context) (string, error) {
	return t.ask(ctx, nil, "rev-parse", "--verify", "--quiet", t.Ref()+"^{commit}")
}

// Commits lists the commits between two, the oldest first.
func (t Review) Commits(ctx context.Context, from, to string) ([]Commit, error) {
	if err := commits(from, to); err != nil {
		return nil, err
	}
	said, err := t.ask(ctx, nil, "log", "-z", "--no-show-signature", "--encoding=UTF-8", "--max-count="+strconv.Itoa(commitsMax),
		"--format=%H%n%at%n%an%n%s", from+".."+to)
	if err != nil {
		return nil, err
	}
	var all []Commit
	for _, text := range worktree.Zeroed(said) {
		part := strings.SplitN(strings.ToValidUTF8(text, "\uFFFD"), "\n", 4)
		if len(part) != 4 {
			return nil, errors.New("git log printed something that is not a list of commits")
		}
		at, err := strconv.ParseInt(part[1], 10, 64)
		if err != nil {
			at = 0 // the agent wrote it
		}
		all = append(all, Commit{ID: part[0], At: time.Unix(at, 0).UTC(), Author: part[2], Subject: part[3]})
	}
	slices.Reverse(all)
	return all, nil
}

// Parent is the first parent of a commit.
func (t Review) Parent(ctx context.Context, commit string) (string, error) {
	if err := commits(commit); err != nil {
		return "", err
	}
	return t.ask(ctx, nil, "rev-parse", "--verify", "--quiet", commit+"^{commit}^")
}

// plainDiff are the settings under which a difference does not depend on the configuration of the person, and
// starts no other program.
var plainDiff = []string{
	"--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", "--src-prefix=a/", "--dst-prefix=b/",
	"--submodule=short", "--diff-algorithm=histogram",
}

// ListChanges prints the changed files: git's raw and numstat lists with -z.
func (t Review) ListChanges(ctx context.Context, from, to string) (string, error) {
	if err := commits(from, to); err != nil {
		return "", err
	}
	args := append([]string{"diff", "--raw", "--numstat", "-z", "--no-abbrev"}, plainDiff...)
	return t.ask(ctx, nil, append(args, from, to, "--")...)
}

// FileChanges prints what was changed in one file. paths are its names: two, if it was renamed.
func (t Review) FileChanges(ctx context.Context, from, to string, paths ...string) (string, error) {
	if err := commits(from, to); err != nil {
		return "", err
	}
	args := append([]string{"diff"}, plainDiff...)
	said, err := t.own().Run(ctx, worktree.GitWorkMax, asStored, nil, append(append(args, from, to, "--"), paths...)...)
	return said, err
}

// Size is the number of bytes of contents together.
func (t Review) Size(ctx context.Context, ids ...string) (bytes int64, err error) {
	for _, id := range ids {
		if strings.Trim(id, "0") == "" {
			continue
		}
		if err := commits(id); err != nil {
			return 0, err
		}
		said, err := t.ask(ctx, nil, "cat-file", "-s", id)
		if worktree.GitSaidNo(err) {
			continue // a submodule's commit
		} else if err != nil {
			return 0, err
		}
		n, err := strconv.ParseInt(said, 10, 64)
		if err != nil {
			return 0, err
		}
		bytes += n
	}
	return bytes, nil
}

// commits returns an error unless all are whole ids, which are no options and no names of refs.
func commits(ids ...string) error {
	for _, id := range ids {
		if !commitID.MatchString(id) {
			return fmt.Errorf("%q is not the id of a commit", id)
		}
	}
	return nil
}

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
	commits = cmp.Or(commits, "none")
	return fmt.Sprintf("An earlier conversation has worked on this task in this folder, and cannot be continued. Go on from what is there.\n\n"+
		"Commits so far:\n%s\n\nChanged so far, compared with branch %s, committed or not:\n%s\n", commits, t.Base,
		strings.Join(lines, "\n")), nil
}
