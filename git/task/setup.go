package task

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// lockFiles name what package managers install. Setup runs again when one of them has changed.
var lockFiles = []string{
	"package-lock.json", "pnpm-lock.yaml", "yarn.lock", "go.sum", "Cargo.lock", "uv.lock", "poetry.lock",
	"requirements.txt", "Gemfile.lock", "composer.lock",
}

// SetupFailed is a command of Setup that ended with an exit code other than 0.
type SetupFailed struct {
	Command string
	Err     error
}

func (e *SetupFailed) Error() string { return fmt.Sprintf("setup `%s`: %v", e.Command, e.Err) }

// setupFile has the key of what Setup was last run for in the task's folder. It is outside of the folder, where the
// agent cannot write it.
func setupFile(t Task) string { return filepath.Join(t.Run, "setup") }

// runSetup runs the commands of Setup in a folder with some content, unless they ran there for the same commands and
// lock files.
func runSetup(ctx context.Context, t Task, out io.Writer, dir, keyFile, content string) error {
	if len(t.Setup) == 0 {
		return nil
	}
	key, err := setupKey(ctx, t, content)
	if err != nil {
		return err
	}
	if was, err := os.ReadFile(keyFile); err == nil && string(was) == key {
		_, err := fmt.Fprintln(out, "setup: it ran for these lock files already")
		return err
	}
	if err := os.Remove(keyFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, line := range t.Setup {
		if err := t.shell(ctx, out, dir, line); errors.As(err, new(*noView)) {
			return fmt.Errorf("setup `%s` was not run: %w", line, err)
		} else if err != nil {
			return &SetupFailed{line, err}
		}
	}
	return os.WriteFile(keyFile, []byte(key), 0o600)
}

// setupKey is what the result of Setup depends on, as far as Fairlead knows.
func setupKey(ctx context.Context, t Task, content string) (string, error) {
	list, err := t.ask(ctx, nil, "ls-tree", "-r", "-z", content)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, line := range t.Setup {
		fmt.Fprintf(sum, "%q\n", line)
	}
	for _, entry := range worktree.Zeroed(list) {
		if _, name, ok := strings.Cut(entry, "\t"); ok && slices.Contains(lockFiles, path.Base(name)) {
			fmt.Fprintf(sum, "%q\n", entry)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// landingDir is the folder in which the checks of merged files run. It stays, so that Setup need not run for each
// task. Tasks use it one at a time (queue). What another host has written leaves nothing in the folder of the others, whose checks may
// run without a sandbox.
func landingDir(t Task) string {
	name := "landing-" + digest(t.Base)
	if t.From != "" {
		name += "-hosts"
	}
	return filepath.Join(filepath.Dir(t.Tree), name)
}

// mergedFolder puts content into the landing folder. What Setup has made there stays, if git ignores it.
func mergedFolder(ctx context.Context, t Task, tree string) (dir string, err error) {
	dir = landingDir(t)
	index := dir + ".index"
	if _, err := os.Lstat(index); err == nil && t.fill(ctx, dir, index, tree) == nil {
		return dir, nil
	}
	for _, left := range []string{dir, index, dir + ".setup"} { // none yet, or not usable
		if err := os.RemoveAll(left); err != nil {
			return "", err
		}
	}
	return dir, t.fill(ctx, dir, index, tree)
}

// fill writes content into a folder, in which checks of other content may have written. index says what git has written there before.
func (t Task) fill(ctx context.Context, dir, index, tree string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as the checkout
		return err
	}
	if err := withoutCopies(t, dir); err != nil { // they may have changed
		return err
	}
	in, err := worktree.Enter(ctx, worktree.Room{Repo: t.own(), Folder: dir, Write: true, Borrows: []string{t.Git}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if err := os.Rename(index, in.Index()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, args := range [][]string{
		{"read-tree", "--reset", "-u", tree}, {"checkout-index", "--all", "--force", "--quiet"}, {"clean", "-ffdq"},
	} {
		if _, err := in.Files(ctx, nil, args...); err != nil {
			return err
		}
	}
	return os.Rename(in.Index(), index)
}

// checkMerged runs the checks on content that is in no folder yet.
func checkMerged(ctx context.Context, t Task, out io.Writer, tree string) error {
	dir, err := mergedFolder(ctx, t, tree)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "branch %s has moved; the checks run on the merged files\n", t.Base); err != nil {
		return err
	}
	if err := copies(t, out, dir); err != nil {
		return err
	}
	if err := runSetup(ctx, t, out, dir, dir+".setup", tree); err != nil {
		return err
	}
	return t.checkIn(ctx, out, dir)
}

const (
	checksName    = "checks.json"
	checkTailMax  = 4 << 10 // bytes of the end of a command's output that are kept
	checksFileMax = 4 << 20
)

// CheckResult is the result of one command of the checks.
type CheckResult struct {
	Command string        `json:"command"`
	Passed  bool          `json:"passed"`
	Took    time.Duration `json:"took_ns"`
	Ended   time.Time     `json:"ended_at"`
	Tail    string        `json:"tail,omitempty"` // the end of its output
}

// CheckResults are the results of the newest checks, in order. Commands after one that failed have none.
func (t Review) CheckResults() (all []CheckResult, err error) {
	file, err := os.Open(filepath.Join(t.Run, checksName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, checksFileMax))
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(text, &all)
}

// checkOne runs one command. The error is *CheckFailed if it fails.
func (t Task) checkOne(ctx context.Context, out io.Writer, tree, line string) (done CheckResult, err error) {
	began, end := time.Now(), &tail{out: out}
	err = t.shell(ctx, end, tree, line)
	done = CheckResult{Command: line, Passed: err == nil, Took: time.Since(began), Ended: time.Now().UTC(), Tail: end.text()}
	if signal := endedBy(err); signal != "" {
		return done, fmt.Errorf("check `%s` was ended by the signal %s, which says nothing about the files", line, signal)
	}
	if errors.As(err, new(*noView)) {
		return done, fmt.Errorf("check `%s` was not run: %w", line, err)
	}
	if err != nil {
		err = &CheckFailed{line, err}
	}
	return done, err
}

// endedBy is the signal with which another program has ended a command; empty: it ended otherwise. A command that fails on a
// fault of its own has other signals.
func endedBy(err error) string {
	var exit *exec.ExitError
	var status syscall.WaitStatus
	if inside := endedInside(0); errors.As(err, &inside) {
		status = syscall.WaitStatus(inside)
	} else if errors.As(err, &exit) {
		status, _ = exit.Sys().(syscall.WaitStatus)
	}
	if !status.Signaled() ||
		!slices.Contains([]syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}, status.Signal()) {
		return ""
	}
	return status.Signal().String()
}

// noteCheck keeps the result of a command; the first one replaces those of earlier checks.
func noteCheck(t Task, at int, done CheckResult) error {
	var all []CheckResult
	if at > 0 {
		var err error
		if all, err = (Review{t}).CheckResults(); err != nil {
			return err
		}
	}
	return file.StoreJSON(filepath.Join(t.Run, checksName), append(all, done))
}

// tail hands output on, and keeps its end.
type tail struct {
	out  io.Writer
	kept []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if more := len(t.kept) - checkTailMax; more > 0 {
		t.kept = append(t.kept[:0], t.kept[more:]...)
	}
	return t.out.Write(b)
}

func (t *tail) text() string {
	kept := t.kept
	if _, rest, ok := bytes.Cut(kept, []byte("\n")); ok { // the command's own line, or half a line
		kept = rest
	}
	return string(bytes.ToValidUTF8(kept, []byte("\uFFFD")))
}
