package task

import (
	"context"
	"crypto/sha1" //nolint:gosec // the length of git's hashes
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/git/forge"
	"github.com/fairlead-dev/fairlead/git/worktree"
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
	if err := t.There(); err != nil {
		return err
	}
	if err := t.Refresh(ctx); err != nil {
		return err
	}
	if err := renew(ctx, t); err != nil {
		return err
	}
	if err := copies(t, out, t.Tree); err != nil || len(t.Setup) == 0 {
		return err
	}
	p, err := t.Snapshot(ctx)
	if err != nil {
		return err
	}
	_, err = runSetup(ctx, t, out, t.Tree, setupFile(t), p.Tree)
	return err
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
	// Nothing but an earlier try of this has run git there, and its session is over: a lock is of a git that was killed.
	if err := inGit(t, func(git *os.Root) error {
		for _, name := range []string{"index", "HEAD", "refs/heads/" + t.Branch} {
			if err := git.Remove(name + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	// the clone shares the objects
	if err := t.clone().Write(ctx, t.Tree, []string{"checkout", "--quiet", "--no-track", "-B", t.Branch, tip}); err != nil {
		return fmt.Errorf("bring the folder of task %s to the newest commit of %s: %w", t.ID, t.Base, err)
	}
	if err := t.setRef(ctx, t.Ref(), tip); err != nil {
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

// halfMerged lists the files whose conflicts the clone's index has as unresolved.
func halfMerged(ctx context.Context, t Task) ([]string, error) {
	format, err := t.ask(ctx, nil, "rev-parse", "--show-object-format")
	if err != nil {
		return nil, err
	}
	if format == "sha1" {
		return unmerged(t, sha1.Size)
	}
	return unmerged(t, sha256.Size)
}

// someOf is a list of names with an end.
func someOf(names []string) string {
	if more := len(names) - namesTold; more > 0 {
		names = append(names[:namesTold:namesTold], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// withoutKeys is an environment without the keys of model providers: setup and checks have no model.
func withoutKeys(env []string) []string {
	return slices.DeleteFunc(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(network.Providers(), func(p network.Provider) bool { return slices.Contains(p.Keys, name) })
	})
}

// shell runs a command line in a folder. It ends with the command: what that has left in the background is ended, and this is
// said in the output.
func (t Task) shell(ctx context.Context, out io.Writer, tree, line string) error {
	if _, err := fmt.Fprintf(out, "$ %s\n", line); err != nil {
		return err
	}
	in, err := t.enter(ctx, []string{"sh", "-c", line}, withoutKeys(forge.WithoutLogin(os.Environ())), tree)
	if err != nil {
		return err
	}
	defer func() { _ = in.leave() }() // what is left goes with the step's session
	limited, stop := ctx, func() {}
	if t.Timeout > 0 {
		limited, stop = context.WithTimeout(ctx, t.Timeout)
	}
	defer stop()
	said, to, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close()
	cmd := exec.CommandContext(limited, in.argv[0], in.argv[1:]...) //nolint:gosec // commands that a person configured
	cmd.SysProcAttr, cmd.ExtraFiles = in.attr, in.files
	cmd.SysProcAttr.Setpgid = true
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Dir, cmd.Stdout, cmd.Stderr = in.dir, to, to // files: what is left holds them, and is not waited for
	cmd.Env = append(in.env, "PWD="+in.dir)
	err = cmd.Start()
	if fault := to.Close(); err != nil || fault != nil {
		return errors.Join(err, fault)
	}
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(out, said)
		copied <- err
	}()
	over, err := in.wait(cmd)
	var left []string
	var fault error
	if t.EndLeft != nil {
		left, fault = t.EndLeft(ctx, cmd.Process.Pid)
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // an error: none of its group is left
	if !over {
		_ = cmd.Wait() // process 1 of the view
	}
	if fault != nil {
		_ = said.SetReadDeadline(time.Now()) // what does not end does not stop writing, either
	} else {
		_ = said.SetReadDeadline(time.Now().Add(leftMax))
	}
	if err := <-copied; err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		fault = errors.Join(fault, err)
	}
	if len(left) > 0 {
		_, failed := fmt.Fprintf(out, "ended what the command has left in the background: %s\n", strings.Join(left, ", "))
		fault = errors.Join(fault, failed)
	}
	if words := in.notHeld(); words != "" {
		_, failed := fmt.Fprintf(out, "the view in which the command ran does not hold: %s (`fairlead doctor` says why)\n", words)
		fault = errors.Join(fault, failed)
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("it ran longer than %s, the limit (tasks.timeout in fairlead.yaml), and its processes were ended", t.Timeout)
	}
	return errors.Join(err, fault)
}

// leftMax is how long the output of a command is read after its end: all of it is there already, but a process that could
// not be ended may hold it open.
const leftMax = 10 * time.Second

// Shown is what a person is to approve.
type Shown struct {
	Asked
	Governs Governs
	Told    []string // what a person has to know about the round, the checks, and tests that are changed or deleted
	Stat    []string // a line for each changed file, and their sum
	Diff    string   // the file with the whole difference; empty if there is none
	Files   int      // number of changed files

	Round     int  // from 1
	Unchanged bool // a person asked for changes, and the content is what was shown before
}

// Show finds what a person is to approve, and keeps it: exactly this is landed. The whole difference is written
// into a folder.
func (t Task) Show(ctx context.Context, dir string) (s Shown, err error) {
	if names, _, err := t.conflicts(ctx); err != nil {
		return s, err
	} else if len(names) > 0 {
		return s, &Blocked{fmt.Sprintf("the folder is in the middle of a merge, which is no result: %s have conflicts; finish it in %s, then continue", someOf(names), t.Tree)}
	}
	p, err := t.Snapshot(ctx)
	if err != nil {
		return s, err
	}
	if s.From, err = t.Before(ctx, p.Commit); err != nil {
		return s, err
	}
	if p, err = withoutOwn(ctx, t, p, s.From); err != nil {
		return s, err
	}
	s.Tree, s.Commit = p.Tree, p.Commit
	if s.Governs, err = (Review{t}).governs(ctx, s.From, s.Commit); err != nil {
		return s, err
	}
	var request int
	if s.Round, request, s.Unchanged, err = t.roundOf(ctx, s.Commit, s.Tree); err != nil {
		return s, err
	}
	if s.Files, err = changed(ctx, t, s.From, p.Commit); err != nil {
		return s, err
	}
	checks, err := t.checksTold()
	if err != nil {
		return s, err
	}
	failed, err := t.failedTold(s.Round)
	if err != nil {
		return s, err
	}
	tests, err := t.testsTold(ctx, s.From, s.Commit)
	if err != nil {
		return s, err
	}
	s.Told = slices.Concat(s.roundTold(request), failed, checks, tests)
	if s.Stat, err = stat(ctx, t, s.From, p.Commit, linesTold); err != nil {
		return s, err
	}
	if len(s.Stat) == 0 {
		s.Stat = []string{"no file was changed"}
	} else {
		s.Diff = filepath.Join(dir, t.ID+".diff")
		if _, err := t.ask(ctx, nil, "diff", "--no-ext-diff", "--no-textconv", "--output="+s.Diff, s.From, p.Commit); err != nil {
			return s, err
		}
	}
	if marked, err := t.ask(ctx, nil, "diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--text", "-G^(<{7,}|>{7,}) ", s.From,
		p.Commit); err != nil {
		return s, err
	} else if marked != "" {
		s.Stat = append(s.Stat, "it changes lines that look like conflict markers: "+someOf(worktree.Zeroed(marked)))
	}
	if p.Loose {
		s.Stat = append(s.Stat, "some of it was not committed by the agent; it lands, too")
	}
	if err := t.setRef(ctx, t.shownRef(), p.Commit); err != nil { // keeps its objects; the journal says what was shown
		return s, err
	}
	err = t.setRef(ctx, (Review{t}).roundRef(s.Round), p.Commit)
	return s, err
}

func (t Task) treeOf(ctx context.Context, commit string) (string, error) {
	return t.ask(ctx, nil, "rev-parse", "--verify", commit+"^{tree}")
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
	Lines int // of the base or of the task, whichever are more, in the conflicts; 0: not known
}

func (e *Conflict) Error() string {
	return fmt.Sprintf("it conflicts with branch %s in %s", e.Base, strings.Join(e.Files, ", "))
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
// which they begin to wait. It first looks whether it has landed already. The error is
// *Unchecked if the checks are to run on the merged files first, see CheckMerged; or *Conflict, *Again or *Blocked if it cannot land
// as it is. The task's folder stays as it is.
func (t Task) Land(ctx context.Context) (done Landed, err error) {
	release, err := t.queue()
	if err != nil {
		return done, err
	}
	defer release()
	if err := t.repair(ctx); err != nil {
		return done, err
	}
	for {
		tip, err := t.tip(ctx)
		if err != nil {
			return done, err
		}
		// the process that did it was ended before it could report that
		if done.Commit, err = landed(ctx, t, tip); err != nil || done.Commit != "" {
			return done, err
		}
		if err := t.unheld(ctx); err != nil {
			return done, err
		}
		work, err := t.approved(ctx)
		if err != nil {
			return done, err
		}
		if now, err := t.asAsked(ctx); err == nil {
			done.Later = now.Tree != t.Asked.Tree
		}
		if of, _, _ := noted(t); of != takenBack && t.reaches(ctx, tip, work) {
			return done, nil
		}
		tree, err := applied(ctx, t, tip)
		if err != nil {
			return done, err
		}
		if now, err := t.ask(ctx, nil, "rev-parse", "--verify", tip+"^{tree}"); err != nil || now == tree {
			return done, err
		}
		if !t.passed(tree) {
			return done, &Unchecked{}
		}
		parents, commit := []string{tip}, ""
		if t.How == Merge {
			parents = append(parents, work)
		}
		if t.How == Rebase {
			if commit, err = replay(ctx, t, tip, work, tree); err != nil {
				return done, err
			}
			if commit, err = t.signedAgain(ctx, tip, commit); err != nil {
				return done, err
			}
			done.Joined = commit == ""
		}
		if commit == "" {
			if commit, err = t.landing(ctx, tree, parents...); err != nil {
				return done, err
			}
		}
		if err := begins(t, commit, tip); err != nil {
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

// Unchecked says that what would land has not passed the checks: the base has moved since they ran.
type Unchecked struct{}

func (*Unchecked) Error() string { return "the checks have to run on the merged files" }

// CheckMerged runs the checks on what would land now, if it has not passed them. The error is *CheckFailed if it does not, or one of Land.
func (t Task) CheckMerged(ctx context.Context, out io.Writer) error {
	tip, err := t.tip(ctx)
	if err != nil {
		return err
	}
	tree, err := applied(ctx, t, tip)
	if errors.As(err, new(*Conflict)) || errors.As(err, new(*Again)) {
		return nil // the landing says so
	}
	if err != nil || t.passed(tree) {
		return err
	}
	if err := t.checkMerged(ctx, out, tip, tree); err != nil {
		return err
	}
	return t.notePassed(tree)
}

func landingFile(t Task) string { return filepath.Join(t.Run, "landing") }

// begins notes the commit that is about to land on a tip of the branch. If this process dies after the branch has moved, the
// next one finds the commit on the branch, also after it was reverted there, and does not land the task twice.
func begins(t Task, commit, tip string) error {
	file, err := os.OpenFile(landingFile(t), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, t.Asked.Commit, commit, tip)
	return errors.Join(err, file.Sync(), file.Close())
}

// landed is the commit with which what was approved has landed already; empty if it has not. Any program can write the note,
// so the commit has to have what was approved.
func landed(ctx context.Context, t Task, tip string) (string, error) {
	of, commit, on := noted(t)
	if of == "" || of != t.Asked.Commit || commits(commit, on) != nil {
		return "", nil //nolint:nilerr // a broken note says nothing
	}
	for _, order := range [][2]string{{commit, tip}, {on, commit}} {
		if _, err := t.ask(ctx, nil, "merge-base", "--is-ancestor", order[0], order[1]); worktree.GitSaidNo(err) {
			return "", nil // it died before the branch moved, or the branch was moved back
		} else if err != nil {
			return "", err
		}
	}
	tree, err := applied(ctx, t, on)
	if errors.As(err, new(*Again)) || errors.As(err, new(*Conflict)) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if is, err := t.treeOf(ctx, commit); err != nil || is != tree {
		return "", err
	}
	return commit, nil
}

// noted is what begins has noted last; empty: nothing.
func noted(t Task) (work, commit, tip string) {
	text, err := os.ReadFile(landingFile(t))
	words := strings.Fields(string(text))
	if err != nil || len(words) != 3 {
		return "", "", ""
	}
	return words[0], words[1], words[2]
}

func (t Task) message() string {
	text := strings.TrimSpace(t.Text)
	title, rest, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(title) + "\n\n" + strings.TrimSpace(rest+"\n\nTask: "+t.ID) + "\n"
}

// merged is the content of two commits merged.
func (t Task) merged(ctx context.Context, tip, work string) (tree string, err error) {
	env, err := t.withoutDrivers(ctx)
	if err != nil {
		return "", err
	}
	said, err := t.own().Run(ctx, worktree.GitWorkMax, append(env, asStored...), nil, "merge-tree", "--write-tree", "-z", "--name-only",
		"--no-messages", tip, work)
	lines := worktree.Zeroed(said)
	if err == nil && len(lines) > 0 {
		return lines[0], nil
	}
	if worktree.GitHasNone(err) && len(lines) > 1 {
		return "", &Conflict{Base: t.Base, Files: lines[1:], Lines: t.conflictLines(ctx, lines[0], lines[1:])}
	}
	if err == nil {
		err = errors.New("git merge-tree printed nothing; it needs git 2.38 or newer")
	}
	return "", err
}

// withoutDrivers puts git's own merge in place of the programs that the person's settings name for it: an agent has written what they
// would read.
func (t Task) withoutDrivers(ctx context.Context) (env []string, err error) {
	return t.overridden(ctx, `^merge\..*\.driver$`, func(string) string { return "git merge-file -q --marker-size=%L %A %O %B || exit 1" })
}

// overridden gives settings of the person's that match a pattern other values, for one git.
func (t Task) overridden(ctx context.Context, pattern string, value func(name string) string) (env []string, err error) {
	named, err := t.ask(ctx, nil, "config", "--null", "--name-only", "--get-regexp", pattern)
	if worktree.GitHasNone(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	names := worktree.Zeroed(named)
	for i, name := range names {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, name), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, value(name)))
	}
	return append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(names))), nil
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
		names = append(names, e[min(3, len(e)):])
	}
	return strings.Join(names, ", ")
}
