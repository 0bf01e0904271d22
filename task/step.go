package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fairlead-dev/fairlead/forge"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/sandbox"
	"github.com/fairlead-dev/fairlead/worktree"
)

// writes gives git a text to read.
func writes(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// Prepare brings the folder to the newest commit of the base branch, copies the files of Copy into it, and runs
// the commands of Setup there if they did not run for the same lock files.
func (t Task) Prepare(ctx context.Context, out io.Writer) error {
	if err := errors.Join(t.There(), renew(ctx, t)); err != nil {
		return err
	}
	if err := copies(t, out, t.Tree); err != nil || len(t.Setup) == 0 {
		return err
	}
	p, err := t.Snapshot(ctx)
	if err != nil {
		return err
	}
	return runSetup(ctx, t, out, t.Tree, setupFile(t), p.Tree)
}

// renew moves the branch of an untouched folder to the newest commit of the base branch: the task may have waited
// for others. Later the folder's git settings may be those of another program, so git does not run there.
func renew(ctx context.Context, t Task) error {
	mark := filepath.Join(t.Run, preparedName)
	if _, err := os.Lstat(mark); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tip, err := t.tip(ctx)
	if err != nil {
		return err
	}
	in := worktree.Git{Dir: t.Tree}
	if _, err := in.Run(ctx, worktree.GitWorkMax, in.Inside(), nil, "checkout", "--quiet", "--no-track", "-B", t.Branch, tip); err != nil { // the clone shares the objects
		return fmt.Errorf("bring the folder of task %s to the newest commit of %s: %w", t.ID, t.Base, err)
	}
	if _, err := t.ask(ctx, nil, "update-ref", t.Ref(), tip); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o600)
}

// CheckFailed is a check that ended with an exit code other than 0, or a *SetupFailed without a Command.
type CheckFailed struct {
	Command string
	Err     error
}

func (e *CheckFailed) Error() string {
	if e.Command == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("check `%s`: %v", e.Command, e.Err)
}

// Check runs the checks in the folder, and Setup before them if lock files have changed. It notes the content that has
// passed them, so that landing need not repeat them.
func (t Task) Check(ctx context.Context, out io.Writer) error {
	if len(t.Checks) == 0 {
		_, err := fmt.Fprintln(out, "no checks are configured (tasks.checks in fairlead.yaml)")
		return err
	}
	before, err := t.Snapshot(ctx)
	if err != nil {
		return err
	}
	if err := runSetup(ctx, t, out, t.Tree, setupFile(t), before.Tree); errors.As(err, new(*SetupFailed)) {
		return &CheckFailed{"", err} // the agent changed what is installed
	} else if err != nil {
		return err
	}
	if err := t.checkIn(ctx, out, t.Tree); err != nil {
		return err
	}
	after, err := t.Snapshot(ctx)
	if err != nil {
		return err
	}
	if before.Tree != after.Tree { // by a formatter, or by a person
		_, err := fmt.Fprintln(out, "files were changed while the checks ran; they run again before it lands")
		return err
	}
	return os.WriteFile(t.checkedFile(), []byte(after.Tree), 0o600)
}

func (t Task) checkedFile() string { return filepath.Join(t.Run, "checked") }

// passed reports whether content has passed the checks.
func (t Task) passed(tree string) bool {
	text, err := os.ReadFile(t.checkedFile())
	return len(t.Checks) == 0 || err == nil && string(text) == tree
}

func (t Task) checkIn(ctx context.Context, out io.Writer, tree string) error {
	for i, line := range t.Checks {
		done, err := t.checkOne(ctx, out, tree, line)
		if err := errors.Join(noteCheck(t, i, done), err); err != nil {
			return err
		}
	}
	return nil
}

// shell runs a command line in a folder. What it starts in the background may outlive it, as in any shell.
func (t Task) shell(ctx context.Context, out io.Writer, tree, line string) error {
	if _, err := fmt.Fprintf(out, "$ %s\n", line); err != nil {
		return err
	}
	argv := []string{"sh", "-c", line}
	env := forge.WithoutLogin(os.Environ())
	if t.Sandbox {
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		temp := filepath.Join(t.Run, "temp")
		if err := os.MkdirAll(temp, 0o700); err != nil {
			return err
		}
		env = append(env, "TMPDIR="+temp, "XDG_CACHE_HOME="+filepath.Join(temp, "cache"))
		argv = sandbox.Wrap(exe, argv, sandbox.Box{Write: append([]string{tree, temp}, t.Write...), Attributes: true, Terminals: true})
	}
	limited, stop := ctx, func() {}
	if t.Timeout > 0 {
		limited, stop = context.WithTimeout(ctx, t.Timeout)
	}
	defer stop()
	cmd := exec.CommandContext(limited, argv[0], argv[1:]...) //nolint:gosec // commands that a person configured
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(tree, filepath.FromSlash(t.Prefix)), out, out
	cmd.Env = append(env, "PWD="+cmd.Dir)
	err := cmd.Run()
	if limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("it ran longer than %s, the limit (tasks.timeout in fairlead.yaml), and its processes were ended", t.Timeout)
	}
	return err
}

// Shown is what a person is to approve.
type Shown struct {
	Stat  []string // a line for each changed file, and their sum
	Diff  string   // the file with the whole difference; empty if there is none
	Files int      // number of changed files
}

// Show finds what a person is to approve, and keeps it: exactly this is landed. The whole difference is written
// into a folder.
func (t Task) Show(ctx context.Context, dir string) (s Shown, err error) {
	p, err := t.Snapshot(ctx)
	if err != nil {
		return s, err
	}
	from, err := t.Before(ctx, p.Commit)
	if err != nil {
		return s, err
	}
	if s.Stat, err = stat(ctx, t, from, p.Commit, linesTold); err != nil {
		return s, err
	}
	if s.Files, err = changed(ctx, t, from, p.Commit); err != nil {
		return s, err
	}
	if len(s.Stat) == 0 {
		s.Stat = []string{"no file was changed"}
	} else {
		s.Diff = filepath.Join(dir, t.ID+".diff")
		if _, err := t.ask(ctx, nil, "diff", "--no-ext-diff", "--no-textconv", "--output="+s.Diff, from, p.Commit); err != nil {
			return s, err
		}
	}
	if p.Loose {
		s.Stat = append(s.Stat, "some of it was not committed by the agent; it lands, too")
	}
	tree, err := t.treeOf(ctx, p.Commit)
	if err != nil {
		return s, err
	}
	if err := file.Replace(filepath.Join(t.Run, shownName), []byte(tree+"\n"), 0o644); err != nil {
		return s, err
	}
	if _, err = t.ask(ctx, nil, "update-ref", t.shownRef(), p.Commit); err != nil {
		return s, err
	}
	return s, t.keepRound(ctx, p.Commit)
}

func (t Task) treeOf(ctx context.Context, commit string) (string, error) {
	return t.ask(ctx, nil, "rev-parse", "--verify", commit+"^{tree}")
}

// shown is the commit that a person was shown last. If another machine has shown it, the ref here is missing or of an earlier round:
// then it is a picture of the folder here, which must have the same tree.
func (t Task) shown(ctx context.Context) (commit string, err error) {
	commit, err = t.ask(ctx, nil, "rev-parse", "--verify", "--quiet", t.shownRef()+"^{commit}")
	if err != nil && !worktree.GitHasNone(err) {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(t.Run, shownName))
	if errors.Is(err, fs.ErrNotExist) && commit != "" {
		return commit, nil // an earlier version has shown it
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", &Blocked{"it has not been shown to a person yet"}
	}
	if err != nil {
		return "", err
	}
	tree := strings.TrimSpace(string(text))
	if commit != "" {
		if is, err := t.treeOf(ctx, commit); err != nil || is == tree {
			return commit, err
		}
	}
	p, err := t.Snapshot(ctx)
	if err != nil {
		return "", err
	}
	if is, err := t.treeOf(ctx, p.Commit); err != nil {
		return "", err
	} else if is != tree {
		return "", &Blocked{"another machine has shown it to a person, and the files here are not the same; `fairlead request " + t.ID + "` begins another round"}
	}
	_, err = t.ask(ctx, nil, "update-ref", t.shownRef(), p.Commit)
	return p.Commit, err
}

// changed is the number of files that differ.
func changed(ctx context.Context, t Task, from, to string) (int, error) {
	names, err := t.ask(ctx, nil, "diff", "--name-only", "-z", "--no-ext-diff", from, to)
	return len(worktree.Zeroed(names)), err
}

// Conflict says that a task's changes cannot be merged with the base branch.
type Conflict struct {
	Base  string
	Files []string
}

func (e *Conflict) Error() string {
	return fmt.Sprintf("it conflicts with branch %s in %s. Bring the newest %s into your branch: git fetch origin %s && git merge FETCH_HEAD; resolve the conflicts, and commit",
		e.Base, strings.Join(e.Files, ", "), e.Base, e.Base)
}

// Blocked says that a person has to do something before it can land. Nothing was changed.
type Blocked struct{ Why string }

func (e *Blocked) Error() string { return e.Why }

// Landed is the result of landing. Commit is empty if there was nothing to land.
type Landed struct {
	Commit string
	Later  bool // the folder was changed after it was shown; that did not land
	Joined bool // its commits could not be replayed, so it is one commit

	Checkout string // the person's checkout that has moved with the branch; empty: none has the branch
}

// Land merges what was shown into the base branch. It is one at a time for each base branch, in the order in
// which they begin to wait. The error is *Conflict, *CheckFailed or *Blocked if it cannot land as it is.
func (t Task) Land(ctx context.Context, out io.Writer) (done Landed, err error) {
	release, err := t.queue()
	if err != nil {
		return done, err
	}
	defer release()
	work, err := t.shown(ctx)
	if err != nil {
		return done, err
	}
	if now, err := t.Snapshot(ctx); err == nil {
		done.Later = now.Commit != work && !t.alike(ctx, now.Commit, work)
	}
	for {
		tip, err := t.tip(ctx)
		if err != nil {
			return done, err
		}
		if done.Commit = landed(ctx, t, work, tip); done.Commit != "" {
			return done, nil
		}
		if _, err := t.ask(ctx, nil, "merge-base", "--is-ancestor", work, tip); err == nil {
			return done, nil
		}
		tree, err := t.merged(ctx, tip, work)
		if err != nil {
			return done, err
		}
		if now, err := t.ask(ctx, nil, "rev-parse", "--verify", tip+"^{tree}"); err != nil || now == tree {
			return done, err
		}
		if !t.passed(tree) {
			if err := checkMerged(ctx, t, out, tree); err != nil {
				return done, err
			}
		}
		parents, commit := []string{tip}, ""
		if t.How == Merge {
			parents = append(parents, work)
		}
		if t.How == Rebase {
			if commit, err = replay(ctx, t, tip, work, tree); err != nil {
				return done, err
			}
			done.Joined = commit == ""
		}
		if commit == "" {
			if commit, err = t.commit(ctx, nil, tree, t.message(), parents...); err != nil {
				return done, err
			}
		}
		if err := begins(t, work, commit); err != nil {
			return done, err
		}
		place, moved, err := t.forward(ctx, tip, commit)
		if err != nil {
			return done, err
		}
		if moved {
			done.Commit, done.Checkout = commit, place
			return done, nil
		}
	}
}

func landingFile(t Task) string { return filepath.Join(t.Run, "landing") }

// begins notes the commit that is about to land. If this process dies after the branch has moved, the next one
// finds the commit on the branch, also after it was reverted there, and does not land the task twice.
func begins(t Task, work, commit string) error {
	file, err := os.OpenFile(landingFile(t), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, work, commit)
	return errors.Join(err, file.Sync(), file.Close())
}

// landed is the commit with which this work has landed already; empty if it has not.
func landed(ctx context.Context, t Task, work, tip string) string {
	of, commit := noted(t)
	if of != work {
		return ""
	}
	if _, err := t.ask(ctx, nil, "merge-base", "--is-ancestor", commit, tip); err != nil {
		return "" // it died before the branch moved, or the branch was moved back
	}
	return commit
}

// noted is what begins has noted last; empty: nothing.
func noted(t Task) (work, commit string) {
	text, err := os.ReadFile(landingFile(t))
	words := strings.Fields(string(text))
	if err != nil || len(words) != 2 {
		return "", ""
	}
	return words[0], words[1]
}

func (t Task) message() string {
	text := strings.TrimSpace(t.Text)
	title, rest, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(title) + "\n\n" + strings.TrimSpace(rest+"\n\nTask: "+t.ID) + "\n"
}

// alike reports whether two commits have the same content.
func (t Task) alike(ctx context.Context, a, b string) bool {
	_, err := t.ask(ctx, nil, "diff", "--quiet", "--no-ext-diff", a, b)
	return err == nil
}

// merged is the content of the base branch with the task's changes.
func (t Task) merged(ctx context.Context, tip, work string) (tree string, err error) {
	said, err := t.own().Run(ctx, worktree.GitWorkMax, []string{"GIT_NO_LAZY_FETCH=1"}, nil, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", tip, work)
	lines := worktree.Zeroed(said)
	if err == nil && len(lines) > 0 {
		return lines[0], nil
	}
	if worktree.GitHasNone(err) && len(lines) > 1 {
		return "", &Conflict{t.Base, lines[1:]}
	}
	if err == nil {
		err = errors.New("git merge-tree printed nothing; it needs git 2.38 or newer")
	}
	return "", err
}

// forward moves the base branch to a commit that has tip as its first parent. moved is false if the branch is
// somewhere else meanwhile. place is the checkout of the branch, which is moved with it if it is clean; empty: there is none.
func (t Task) forward(ctx context.Context, tip, commit string) (place string, moved bool, err error) {
	list, err := t.ask(ctx, nil, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return "", false, err
	}
	at := ""
	for _, line := range strings.Split(list, "\x00") {
		if path, ok := strings.CutPrefix(line, "worktree "); ok {
			at = path
		}
		if line == "branch refs/heads/"+t.Base {
			place = at
		}
	}
	if place == "" {
		_, err := t.ask(ctx, nil, "update-ref", "-m", "fairlead: task "+t.ID, "refs/heads/"+t.Base, commit, tip)
		if worktree.GitSaidNo(err) {
			now, fault := t.tip(ctx)
			if fault == nil && now != tip {
				return "", false, nil
			}
		}
		return "", err == nil, err
	}
	in := worktree.Git{Dir: place}
	dirty, err := in.AskIn(ctx, nil, "status", "--porcelain=v1", "-z", "--untracked-files=no", "--ignore-submodules=all")
	if err != nil {
		return "", false, err
	}
	if files := worktree.Zeroed(dirty); len(files) > 0 {
		return "", false, &Blocked{fmt.Sprintf("branch %s is checked out in %s, which has changes that are not committed: %s; commit or stash them, then merge again",
			t.Base, place, listed(files))}
	}
	_, err = in.Run(ctx, worktree.GitWorkMax, in.Inside(), nil, "merge", "--ff-only", "--no-overwrite-ignore", "--quiet", commit)
	if worktree.GitSaidNo(err) {
		if now, fault := t.tip(ctx); fault == nil && now != tip {
			return "", false, nil
		}
		return "", false, &Blocked{fmt.Sprintf("branch %s is checked out in %s and cannot be moved: %v", t.Base, place, err)}
	}
	return place, err == nil, err
}

// listed shows some entries of git status.
func listed(entries []string) string {
	const shown = 5
	var names []string
	for i, e := range entries {
		if i == shown {
			names = append(names, fmt.Sprintf("and %d more", len(entries)-shown))
			break
		}
		if len(e) > 3 && e[2] == ' ' {
			e = e[3:]
		}
		names = append(names, e)
	}
	return strings.Join(names, ", ")
}
