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
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"

	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/git/worktree/store"
)

// Ways to land.
const (
	Squash = "squash" // one commit with all changes
	Merge  = "merge"  // a merge commit, with the task's commits behind it
	Rebase = "rebase" // the task's commits, one after the other
	PR     = "pr"     // a pull request on the forge of a remote
)

// Names of steps in a task's workflow. The commands and the task's state depend on them.
const (
	StepPrepare = "prepare"
	StepWork    = "work"
	StepCheck   = "check"
	StepReview  = "review"
	StepApprove = "approve"
	StepLand    = "land"   // only of one that lands as a pull request
	StepMerged  = "merged" // the checks again, on the files merged with the newest base
)

// Names of files in a task's run folder.
const (
	FileName     = "task.json"
	PromptName   = "task.md"
	CommentsName = "comments.json" // what a person said about lines, in all rounds

	AttachmentsName = "attachments" // the folder of files that were given with it
	preparedName    = "prepared"    // there is one when the folder may hold what was written by other programs

	ReviewName      = "review.md"     // the prompt of the reviewer
	ReviewDiffName  = "review.diff"   // what it is to look at
	ReviewBegunName = "review.json"   // while it works
	FindingsName    = "findings.json" // what it found
)

// File is the environment variable in which a step of a task finds its task.json.
const File = "FAIRLEAD_TASK"

// FromEnv is the environment variable in which a step of a task finds the other host that may have written the folder; unset: none.
const FromEnv = "FAIRLEAD_TASK_FROM"

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

	How    string   `json:"land"`                   // Squash, Merge, Rebase or PR
	Remote string   `json:"remote,omitempty"`       // the remote for pull requests; empty: origin
	Poll   int      `json:"poll_seconds,omitempty"` // how often a pull request is looked at; 0: the default
	Ask    string   `json:"pr_ask,omitempty"`       // AskOnce or AskAlways; empty: AskOnce
	Issue  string   `json:"issue,omitempty"`        // the URL of the issue that it is from
	Copy   []string `json:"copy,omitempty"`
	Setup  []string `json:"setup,omitempty"`
	Checks []string `json:"checks,omitempty"`

	ChecksIn string `json:"checks_in,omitempty"` // ChecksInTask, or ChecksInCheckout, which is the default

	Governing []string `json:"governing,omitempty"` // patterns of more governing files

	Homes []string `json:"homes,omitempty"` // folders below Repo in which agents of the team have their state files

	Timeout time.Duration `json:"timeout,omitempty"` // for each command of Setup and Checks; 0: none

	From string `json:"-"`             // the other host that may have written the folder: setup and checks run only in a view; empty: none
	Wall Wall   `json:"wall,omitzero"` // the view in which setup and checks run

	InSession string `json:"-"` // the session in which a step of the task runs

	Asked Asked `json:"-"` // what a person has approved; only for landing

	// ends what a command of Setup or Checks has left, and does not name one process; nil: only its process group is ended
	EndLeft func(ctx context.Context, not int) (names []string, err error) `json:"-"`
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
	return t.in(filepath.Dir(file)), nil
}

// in is a task whose run's folder is dir. The machine that led when it began may have had the repository in another folder.
func (t Task) in(dir string) Task {
	below := filepath.Join(t.Prefix, ".agents", "runs", t.ID)
	dir, err := filepath.EvalSymlinks(dir)
	now, is := strings.CutSuffix(dir, string(filepath.Separator)+below)
	if err != nil || !is || now == t.Repo || !filepath.IsAbs(now) || t.Run != filepath.Join(t.Repo, below) {
		return t
	}
	for _, path := range []*string{&t.Git, &t.Run, &t.Tree} {
		if rest, is := strings.CutPrefix(*path, t.Repo+string(filepath.Separator)); is {
			*path = filepath.Join(now, rest)
		}
	}
	t.Repo = now
	return t
}

// Save writes task.json.
func (t Task) Save() error { return file.StoreJSON(filepath.Join(t.Run, FileName), t) }

// Title is the first line of the task's text.
func (t Task) Title() string {
	line, _, _ := strings.Cut(strings.TrimSpace(t.Text), "\n")
	return strings.TrimSpace(line)
}

// Ref is the hidden ref under which the newest picture of the folder is kept.
func (t Task) Ref() string { return refs + t.ID }

// headRef is the newest commit that the folder was seen on.
func headRef(t Task) string { return refs + t.ID + ".head" }

// moreRefs has what the folder holds beside its newest picture: other branches, and what was stashed.
func moreRefs(t Task) string { return refs + t.ID + ".more/" }

// shownRef keeps the picture that the person was shown last. It is no evidence of that: see Asked.
func (t Task) shownRef() string { return refs + t.ID + ".shown" }

// Workdir is the folder in which the agent works.
func (t Task) Workdir() string { return filepath.Join(t.Tree, filepath.FromSlash(t.Prefix)) }

// own is git with the person's repository. Commands for the folder's files also get t.folder().
func (t Task) own() worktree.Git { return worktree.Git{Dir: t.Repo} }

// store is Fairlead's copy of the person's repository, which the clone shares.
func (t Task) store() store.Store {
	return store.Of(filepath.Join(t.Repo, filepath.FromSlash(t.Prefix)))
}

// Refresh brings the newest commits of the base to where the clone fetches from.
func (t Task) Refresh(ctx context.Context) error { return t.store().Refresh(ctx, t.Repo, t.Base) }

// asStored makes git read objects as their ids say: without replacements, which any program can make, and without asking a
// remote for them.
var asStored = worktree.AsStored

func (t Task) ask(ctx context.Context, env []string, args ...string) (string, error) {
	said, err := t.own().Run(ctx, worktree.GitWorkMax, append(slices.Clone(asStored), env...), nil, args...)
	return strings.TrimSuffix(said, "\n"), err
}

// refLockMax is how long a lock of one of Fairlead's own refs can be a live git's: one writes a ref in milliseconds.
const refLockMax = 10 * time.Second

// setRef sets one of Fairlead's own refs. A lock of it that is older than refLockMax is of a git that was killed, and is removed.
func (t Task) setRef(ctx context.Context, ref, commit string) error {
	_, err := t.ask(ctx, nil, "update-ref", ref, commit)
	lock := filepath.Join(t.Git, filepath.FromSlash(ref)+".lock")
	info, fault := os.Lstat(lock)
	if !worktree.GitSaidNo(err) || fault != nil || time.Since(info.ModTime()) < refLockMax {
		return err
	}
	if err := without(lock); err != nil {
		return err
	}
	_, err = t.ask(ctx, nil, "update-ref", ref, commit)
	return err
}

// Place finds the repository of a workspace, and the base branch: the given one or the current one. The error
// says what is missing.
func Place(ctx context.Context, workspace, base string) (t Task, err error) {
	g := worktree.Git{Dir: workspace}
	top, err := g.Ask(ctx, "rev-parse", "--show-toplevel")
	if worktree.GitSaidNo(err) {
		return t, noCheckout(ctx, workspace, err)
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

// noCheckout says why git finds no checkout for a workspace.
func noCheckout(ctx context.Context, workspace string, why error) error {
	if bare, err := (worktree.Git{Dir: workspace}).Ask(ctx, "rev-parse", "--is-bare-repository"); err == nil &&
		strings.TrimSpace(bare) == "true" {
		return fmt.Errorf("%s is in a bare repository, which has no files; clone it and give the task there", workspace)
	}
	for dir := workspace; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return fmt.Errorf("git cannot read the repository in %s: %w", dir, why) // it is of another user, for instance
		}
		if dir == filepath.Dir(dir) {
			return fmt.Errorf("%s is in no git repository; run `git init` there and commit", workspace)
		}
	}
}

// tip is the commit of the base branch.
func (t Task) tip(ctx context.Context) (string, error) {
	commit, err := t.ask(ctx, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", "refs/heads/"+t.Base+"^{commit}")
	if worktree.GitHasNone(err) {
		return "", fmt.Errorf("there is no branch %s with a commit; commit something, or name another branch", t.Base)
	}
	return commit, err
}

// Make makes the task's folder. After an error there is none, and no ref.
func (t Task) Make(ctx context.Context) (err error) {
	if err := free(t); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, fault := t.ask(context.WithoutCancel(ctx), nil, "update-ref", "-d", t.Ref())
			err = errors.Join(err, fault)
		}
	}()
	head, err := t.tip(ctx)
	if err != nil {
		return err
	}
	if err := t.setRef(ctx, t.Ref(), head); err != nil { // what it began with stays in the repository
		return err
	}
	return makeFolder(ctx, t, "", "")
}

// Unmake removes the folder of a task that did not begin, and its ref.
func (t Task) Unmake(ctx context.Context) error {
	_, err := t.ask(ctx, nil, "update-ref", "-d", t.Ref())
	return errors.Join(err, os.RemoveAll(t.Tree))
}

// free reports what is in the place of the folder.
func free(t Task) error {
	if _, err := os.Lstat(t.Tree); err == nil {
		return fmt.Errorf("there is something at %s already; look whether it is needed, and remove it", t.Tree)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// makeFolder makes the folder with the content of a commit, on the task's branch at head. Both are empty for the tip of
// the base branch. It is made under another name first, so that a folder that exists is whole.
func makeFolder(ctx context.Context, t Task, commit, head string) (err error) {
	if err := t.Refresh(ctx); err != nil {
		return err
	}
	if head == "" {
		if head, err = t.tip(ctx); err != nil {
			return err
		}
	}
	if commit == head {
		commit = ""
	}
	start := worktree.Start{Branch: t.Branch, Head: head, Files: commit, Base: t.Base, Ignored: copyPatterns(t), NoPush: noPush}
	if err := t.clone().Make(ctx, start); err != nil {
		return fmt.Errorf("make the folder of task %s: %w", t.ID, err)
	}
	return nil
}

// noPush is where a clone pushes to instead of a repository, so that a push of an agent does not change a branch without an approval.
// There is no such repository.
const noPush = "(a task does not push: its changes land when a person approves them)"

// copyPatterns make git leave out the files of Copy.
func copyPatterns(t Task) string {
	var lines strings.Builder
	for _, name := range t.Copy {
		name = filepath.ToSlash(filepath.Join(t.Prefix, name))
		lines.WriteString("/" + literal(name) + "\n")
	}
	return lines.String()
}

// literal is a name as a pattern, of ignored files or of a path, that matches nothing else.
func literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, " ", `\ `).Replace(name)
}

// Picture is what the folder holds at one moment.
type Picture struct {
	Commit string // with everything, also uncommitted files
	Tree   string // its content
	Loose  bool   // it has uncommitted content
}

// Snapshot keeps the folder's content under the task's ref, and under one with a number: its commits, and a commit on top with the
// uncommitted files. Files that git ignores, unless the agent has added them, and those of Copy are left out, as are repositories inside of
// the folder.
func (t Task) Snapshot(ctx context.Context) (p Picture, err error) {
	p, _, _, err = t.picture(ctx)
	return p, err
}

// picture is Snapshot. inner are the repositories inside of the folder, and others is why other branches and stashes could not be kept.
func (t Task) picture(ctx context.Context) (p Picture, inner []string, others, err error) {
	release, err := file.Lock(filepath.Join(t.Run, "lock")) // a person's `fairlead diff` may look at the same time
	if err != nil {
		return p, nil, nil, err
	}
	defer release()
	if err := t.There(); err != nil {
		return p, nil, nil, err
	}
	kept, at, err := t.keptRefs(ctx)
	if err != nil {
		return p, nil, nil, err
	}
	in, err := t.clone().Open(ctx, false)
	if err != nil {
		return p, nil, nil, fmt.Errorf("read the commits of task %s: %w", t.ID, err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if in.Head == "" {
		return p, nil, nil, fmt.Errorf("read the commits of task %s: its branch has none", t.ID)
	}
	if p.Tree, inner, err = t.readFiles(ctx, in); err != nil {
		return p, nil, nil, fmt.Errorf("read the files of task %s: %w", t.ID, err)
	}
	before, err := in.Files(ctx, nil, "rev-parse", "--verify", in.Head+"^{tree}")
	if err != nil {
		return p, nil, nil, err
	}
	parents := []string{in.Head}
	if of, err := t.merges(ctx, in); err != nil {
		return p, nil, nil, err
	} else if of != "" {
		parents = append(parents, of)
	}
	p.Commit, p.Loose = in.Head, p.Tree != before || len(parents) > 1
	if p.Loose {
		if n := len(kept); n > 0 && kept[n-1].tree == p.Tree && slices.Equal(kept[n-1].parents, parents) {
			p.Commit = kept[n-1].Commit // nothing has changed since
		} else if p.Commit, err = in.Commit(ctx, nil, t.Title(), p.Tree, parents...); err != nil {
			return p, nil, nil, err
		}
	}
	if at[headRef(t)] != in.Head || at[t.Ref()] != p.Commit { // otherwise the repository has both
		specs := []string{"+HEAD:" + headRef(t), "+HEAD:" + t.Ref()}
		if p.Loose {
			specs[1] = "+" + p.Commit + ":" + t.Ref()
		}
		if err := in.Fetch(ctx, specs...); err != nil {
			return p, nil, nil, fmt.Errorf("read the commits of task %s: %w", t.ID, err)
		}
	}
	others = t.keepOthers(ctx, in, at) // what cannot be kept now is tried with the next picture, and has to be before the folder goes
	return p, inner, others, keepPicture(ctx, t, p, kept)
}

// readFiles makes a tree of the folder's files. inner are the repositories inside of it.
func (t Task) readFiles(ctx context.Context, in *worktree.Inside) (tree string, inner []string, err error) {
	if _, err := in.Files(ctx, nil, "read-tree", in.Head); err != nil {
		return "", nil, err
	}
	names, err := in.Files(ctx, nil, "ls-files", "-z", "--cached")
	if err != nil {
		return "", nil, err
	}
	others, err := in.Files(ctx, nil, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return "", nil, err
	}
	added, err := staged(t, len(in.Head)/2, names+others)
	if err != nil {
		return "", nil, err
	}
	// git adds a file by writing its object, also if a repository that is read-only here has it; but not one that it knows as unchanged
	if _, err := in.Files(ctx, nil, "update-index", "-q", "--refresh"); err != nil && !worktree.GitSaidNo(err) {
		return "", nil, err
	}
	for _, name := range append(worktree.Zeroed(others), added...) {
		if strings.HasSuffix(name, "/") {
			inner = append(inner, name)
		} else if !t.copied(name) {
			names += name + "\x00"
		}
	}
	if _, err := in.Files(ctx, writes(names), "update-index", "--add", "--remove", "-z", "--stdin"); err != nil {
		return "", nil, err
	}
	tree, err = in.Files(ctx, nil, "write-tree")
	return tree, inner, err
}

// clone is the task's folder, of which the agent may have written everything.
func (t Task) clone() worktree.Clone {
	return worktree.Clone{Repo: t.own(), Dir: t.Tree, Refs: moreRefs(t), Store: t.store().Dir}
}

// There is an error if the task's folder is gone.
func (t Task) There() error {
	if _, err := os.Lstat(t.Tree); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the folder of task %s is gone (%s); `fairlead task restore %s` makes it again", t.ID, t.Tree, t.ID)
	}
	return nil
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
var byFairlead = []string{
	"GIT_AUTHOR_NAME=Fairlead", "GIT_AUTHOR_EMAIL=" + fairleadEmail, "GIT_COMMITTER_NAME=Fairlead",
	"GIT_COMMITTER_EMAIL=" + fairleadEmail,
}

const fairleadEmail = "fairlead@localhost"

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

// Before is the commit that the task's changes are compared with: the newest one that it has of the base, without what
// it has landed itself.
func (t Task) Before(ctx context.Context, commit string) (string, error) {
	tip, err := t.tip(ctx)
	if err != nil {
		return "", err
	}
	if of, own, on := noted(t); own != "" && t.reaches(ctx, tip, own) {
		tip = own + "^"
		if of == takenBack && t.reaches(ctx, own, on) { // it may have landed with several commits
			tip = on
		}
	}
	from, err := t.ask(ctx, nil, "merge-base", tip, commit)
	if worktree.GitHasNone(err) {
		return "", fmt.Errorf("branch %s and the task have no commit in common", t.Base)
	}
	if err != nil {
		return "", err
	}
	// The base of a pull request is on the forge, and may be newer than the branch here.
	if newer, err := t.ask(ctx, nil, "merge-base", remoteBaseRef(t), commit); err == nil {
		if _, err := t.ask(ctx, nil, "merge-base", "--is-ancestor", from, newer); err == nil {
			return newer, nil
		}
	}
	return from, nil
}
