package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/worktree"
)

// Ways to land.
const (
	Squash = "squash" // one commit with all changes
	Merge  = "merge"  // a merge commit, with the task's commits behind it
)

// Names of steps in a task's workflow. The commands and the task's state depend on them.
const (
	StepPrepare = "prepare"
	StepWork    = "work"
	StepCheck   = "check"
	StepReview  = "review"
	StepApprove = "approve"
	StepLand    = "land"
)

// Metrics in the reports of a task's steps.
const (
	MetricFiles  = "files_changed" // by StepApprove
	MetricLanded = "landed_commit" // by StepLand; none if there was nothing to land
)

// Names of files in a task's run folder.
const (
	FileName     = "task.json"
	PromptName   = "task.md"
	WorkflowName = "workflow.yaml"
	CommentsName = "comments.json" // what a person has not sent yet

	AttachmentsName = "attachments" // the folder of files that were given with it
	preparedName    = "prepared"    // there is one when the folder may hold what was written by other programs
)

// RequestName is the file with what a person asked to be changed before a round of the work, from 1.
func RequestName(round int) string { return fmt.Sprintf("request-%d.md", round) }

// File is the environment variable in which a step of a task finds its task.json.
const File = "FAIRLEAD_TASK"

const refs = "refs/fairlead/tasks/"

// Task is one task, as stored in task.json. Paths are absolute.
type Task struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Agent  string `json:"agent"`
	Repo   string `json:"repo"`             // the top folder of the person's repository
	Git    string `json:"git"`              // its .git folder
	Prefix string `json:"prefix,omitempty"` // the workspace below Repo; empty: Repo itself
	Run    string `json:"run"`              // the run's folder
	Tree   string `json:"tree"`             // the clone in which the work is done
	Base   string `json:"base"`             // the branch on which it lands
	Branch string `json:"branch"`           // the clone's branch

	How    string   `json:"land"` // Squash or Merge
	Copy   []string `json:"copy,omitempty"`
	Setup  []string `json:"setup,omitempty"`
	Checks []string `json:"checks,omitempty"`

	Sandbox bool     `json:"sandbox,omitempty"` // setup and checks run in the kernel's sandbox, as the agent does
	Write   []string `json:"write,omitempty"`   // what they may write there besides the folder
}

// Load reads a task.json.
func Load(file string) (Task, error) {
	var t Task
	text, err := os.ReadFile(file)
	if err != nil {
		return t, err
	}
	if err := json.Unmarshal(text, &t); err != nil {
		return t, fmt.Errorf("%s: %w", file, err)
	}
	if t.ID == "" || t.Repo == "" || t.Tree == "" || t.Base == "" {
		return t, fmt.Errorf("%s: it is not a task", file)
	}
	return t, nil
}

// Save writes task.json.
func (t Task) Save() error {
	text, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.Run, FileName), append(text, '\n'), 0o600)
}

// Title is the first line of the task's text.
func (t Task) Title() string {
	line, _, _ := strings.Cut(strings.TrimSpace(t.Text), "\n")
	return strings.TrimSpace(line)
}

// Ref is the hidden ref under which the newest picture of the folder is kept.
func (t Task) Ref() string { return refs + t.ID }

// shownRef is the picture that the person was shown last.
func (t Task) shownRef() string { return refs + t.ID + ".shown" }

// Workdir is the folder in which the agent works.
func (t Task) Workdir() string { return filepath.Join(t.Tree, filepath.FromSlash(t.Prefix)) }

// own is git with the person's repository. Commands for the folder's files also get t.folder().
func (t Task) own() worktree.Git { return worktree.Git{Dir: t.Repo} }

// folder makes git read the folder's files with the settings of the person's repository, and with an index of
// the task.
func (t Task) folder() []string {
	return []string{"GIT_DIR=" + t.Git, "GIT_WORK_TREE=" + t.Tree, "GIT_INDEX_FILE=" + filepath.Join(t.Run, "index")}
}

func (t Task) ask(ctx context.Context, env []string, args ...string) (string, error) {
	said, err := t.own().Run(ctx, worktree.GitWorkMax, append([]string{"GIT_NO_LAZY_FETCH=1"}, env...), nil, args...)
	return strings.TrimSuffix(said, "\n"), err
}

// Place finds the repository of a workspace, and the base branch: the given one or the current one. The error
// says what is missing.
func Place(ctx context.Context, workspace, base string) (t Task, err error) {
	g := worktree.Git{Dir: workspace}
	top, err := g.Ask(ctx, "rev-parse", "--show-toplevel")
	if worktree.GitSaidNo(err) {
		return t, fmt.Errorf("%s is in no git repository; run `git init` there and commit", workspace)
	} else if err != nil {
		return t, err
	}
	t.Repo = strings.TrimSuffix(top, "\n")
	prefix, err := filepath.Rel(t.Repo, workspace)
	if err != nil || !filepath.IsLocal(prefix) {
		return t, fmt.Errorf("%s is not below its repository %s", workspace, t.Repo)
	}
	if prefix != "." {
		t.Prefix = filepath.ToSlash(prefix)
	}
	if t.Git, err = t.ask(ctx, nil, "rev-parse", "--path-format=absolute", "--git-common-dir"); err != nil {
		return t, err
	}
	if base == "" {
		if base, err = t.ask(ctx, nil, "symbolic-ref", "--quiet", "--short", "HEAD"); worktree.GitHasNone(err) {
			return t, fmt.Errorf("the repository is on no branch (detached HEAD); name the branch to land on with --base, or `base` in fairlead.yaml")
		} else if err != nil {
			return t, err
		}
	}
	t.Base = base
	if _, err := t.ask(ctx, nil, "check-ref-format", "refs/heads/"+base); err != nil || strings.HasPrefix(base, "-") {
		return t, fmt.Errorf("%q is not a branch name", base)
	}
	if _, err := t.tip(ctx); err != nil {
		return t, err
	}
	if t.Prefix != "" {
		if _, err := t.ask(ctx, nil, "cat-file", "-e", "refs/heads/"+base+":"+t.Prefix); err != nil {
			return t, fmt.Errorf("the folder %s is not in branch %s; commit it", t.Prefix, base)
		}
	}
	if text, err := t.ask(ctx, nil, "ls-tree", "-r", "--name-only", "refs/heads/"+base, "--", ".gitmodules"); err == nil && text != "" {
		return t, errors.New("the repository has submodules, which tasks do not support; use `fairlead run` with a workflow")
	}
	return t, nil
}

// tip is the commit of the base branch.
func (t Task) tip(ctx context.Context) (string, error) {
	commit, err := t.ask(ctx, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", "refs/heads/"+t.Base+"^{commit}")
	if worktree.GitHasNone(err) {
		return "", fmt.Errorf("there is no branch %s with a commit; commit something, or name another branch", t.Base)
	}
	return commit, err
}

// Make makes the task's folder. After an error there is none.
func (t Task) Make(ctx context.Context) (err error) {
	if _, err := os.Lstat(t.Tree); err == nil {
		return fmt.Errorf("there is something at %s already; look whether it is needed, and remove it", t.Tree)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(t.Tree))
		}
	}()
	if _, err := t.ask(ctx, nil, "clone", "--quiet", "--shared", "--single-branch", "--no-tags", "--branch", t.Base, "--", t.Repo, t.Tree); err != nil {
		return fmt.Errorf("make the folder of task %s: %w", t.ID, err)
	}
	in := worktree.Git{Dir: t.Tree} // no other program has written in it yet
	if _, err := in.Run(ctx, worktree.GitWorkMax, in.Inside(), nil, "checkout", "--quiet", "--no-track", "-b", t.Branch); err != nil {
		return fmt.Errorf("make the branch of task %s: %w", t.ID, err)
	}
	for _, key := range []string{"user.name", "user.email"} {
		value, err := t.ask(ctx, nil, "config", key)
		if worktree.GitHasNone(err) {
			continue // landing says so
		} else if err != nil {
			return err
		}
		if _, err := in.AskIn(ctx, nil, "config", key, value); err != nil {
			return err
		}
	}
	head, err := t.tip(ctx)
	if err != nil {
		return err
	}
	_, err = t.ask(ctx, nil, "update-ref", t.Ref(), head) // what it began with stays in the repository
	return err
}

// Picture is what the folder holds at one moment.
type Picture struct {
	Commit string // with everything, also uncommitted files
	Tree   string // its content
	Loose  bool   // it has uncommitted content
}

// Snapshot keeps the folder's content under the task's ref: its commits, and a commit on top with the
// uncommitted files. Files that git ignores and those of Copy are left out, as are repositories inside of the folder.
func (t Task) Snapshot(ctx context.Context) (p Picture, err error) {
	release, err := lock(filepath.Join(t.Run, "lock")) // a person's `fairlead diff` may look at the same time
	if err != nil {
		return p, err
	}
	defer release()
	for _, left := range []string{"index", "index.lock"} { // of a git that was killed
		if err := os.Remove(filepath.Join(t.Run, left)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return p, err
		}
	}
	if _, err := t.ask(ctx, nil, "-c", "fetch.fsckObjects=true", "-c", "protocol.file.allow=always", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head",
		"--no-recurse-submodules", "--no-auto-maintenance", "--", t.Tree, "+HEAD:"+t.Ref()); err != nil {
		return p, fmt.Errorf("read the commits of task %s: %w", t.ID, err)
	}
	head, err := t.ask(ctx, nil, "rev-parse", "--verify", t.Ref()+"^{commit}")
	if err != nil {
		return p, err
	}
	if _, err := t.ask(ctx, t.folder(), "read-tree", head); err != nil {
		return p, err
	}
	names, err := t.ask(ctx, t.folder(), "ls-files", "-z", "--cached")
	if err != nil {
		return p, err
	}
	others, err := t.ask(ctx, t.folder(), "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return p, err
	}
	for _, name := range worktree.Zeroed(others) {
		if !strings.HasSuffix(name, "/") && !t.copied(name) {
			names += name + "\x00"
		}
	}
	if _, err := t.own().Run(ctx, worktree.GitWorkMax, t.folder(), writes(names), "update-index", "--add", "--remove", "-z", "--stdin"); err != nil {
		return p, fmt.Errorf("read the files of task %s: %w", t.ID, err)
	}
	if p.Tree, err = t.ask(ctx, t.folder(), "write-tree"); err != nil {
		return p, err
	}
	before, err := t.ask(ctx, nil, "rev-parse", "--verify", head+"^{tree}")
	if err != nil {
		return p, err
	}
	p.Commit, p.Loose = head, p.Tree != before
	if p.Loose {
		if p.Commit, err = t.commit(ctx, byFairlead, p.Tree, t.Title(), head); err != nil {
			return p, err
		}
	}
	_, err = t.ask(ctx, nil, "update-ref", t.Ref(), p.Commit)
	return p, err
}

// Newest is the newest picture of the task: of its folder, or of the time before that was removed.
func (t Task) Newest(ctx context.Context) (commit string, err error) {
	if _, err := os.Lstat(t.Tree); err == nil {
		p, err := t.Snapshot(ctx)
		return p.Commit, err
	}
	return t.ask(ctx, nil, "rev-parse", "--verify", "--quiet", t.Ref()+"^{commit}")
}

// copied reports whether a path is one of Copy, or below one.
func (t Task) copied(name string) bool {
	return slices.ContainsFunc(t.Copy, func(c string) bool {
		c = filepath.ToSlash(filepath.Join(t.Prefix, c))
		return name == c || strings.HasPrefix(name, c+"/")
	})
}

// byFairlead is the author of commits that keep uncommitted files.
var byFairlead = []string{"GIT_AUTHOR_NAME=Fairlead", "GIT_AUTHOR_EMAIL=fairlead@localhost", "GIT_COMMITTER_NAME=Fairlead", "GIT_COMMITTER_EMAIL=fairlead@localhost"}

func (t Task) commit(ctx context.Context, env []string, tree, message string, parents ...string) (string, error) {
	args := []string{"commit-tree", "-m", message}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	commit, err := t.ask(ctx, env, append(args, tree)...)
	if _, unknown := t.ask(ctx, env, "var", "GIT_COMMITTER_IDENT"); err != nil && unknown != nil {
		return "", &Blocked{"git does not know who you are; run git config user.name NAME and git config user.email ADDRESS"}
	}
	return commit, err
}

// Before is the commit that the task's changes are compared with: the newest one that it has of the base.
func (t Task) Before(ctx context.Context, commit string) (string, error) {
	tip, err := t.tip(ctx)
	if err != nil {
		return "", err
	}
	from, err := t.ask(ctx, nil, "merge-base", tip, commit)
	if worktree.GitHasNone(err) {
		return "", fmt.Errorf("branch %s and the task have no commit in common", t.Base)
	}
	return from, err
}

// Remove removes the folder after its content is kept under the task's ref. It returns that ref.
func (t Task) Remove(ctx context.Context) (ref string, err error) {
	if _, err := os.Lstat(t.Tree); errors.Is(err, fs.ErrNotExist) {
		return t.Ref(), nil
	}
	if _, err := t.Snapshot(ctx); err != nil {
		return "", fmt.Errorf("the folder %s stays, because its content could not be kept: %w", t.Tree, err)
	}
	return t.Ref(), os.RemoveAll(t.Tree)
}
