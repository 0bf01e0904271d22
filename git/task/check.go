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

// Check runs the checks on what the folder has, and Setup before them where it has not run for these lock files. If the task changes
// governing files, the checks run a second time with the base's version of these files: the second result decides. What passes the
// first time alone is for a person to decide. The error is *CheckFailed if the work is to go back.
func (t Task) Check(ctx context.Context, out io.Writer) error {
	err := t.check(ctx, out)
	if failed, is := errors.AsType[*CheckFailed](err); is {
		if fault := t.noteFailed(ctx, failed); fault != nil {
			return fault
		}
	}
	return err
}

func (t Task) check(ctx context.Context, out io.Writer) error {
	if names, _, err := t.conflicts(ctx); err != nil {
		return err
	} else if err := t.waits(names, "fairlead run resume"); err != nil {
		return err
	} else if len(names) > 0 {
		return &CheckFailed{
			"",
			fmt.Errorf("the folder is in the middle of a merge, and these files have conflicts: %s. Resolve them, `git add` them, and commit", someOf(names)),
		}
	}
	p, err := t.Snapshot(ctx)
	if err != nil {
		return err
	}
	from, err := t.Before(ctx, p.Commit)
	if err != nil {
		return err
	}
	if left, err := t.leftConflicts(ctx, from, p.Commit); err != nil {
		return err
	} else if len(left) > 0 {
		return &CheckFailed{
			"", fmt.Errorf("these files have conflicts of a merge that are not resolved (lines from <<<<<<< to >>>>>>>): %s. Resolve them, and commit", someOf(left)),
		}
	}
	if len(t.Checks) == 0 {
		_, err := fmt.Fprintln(out, "no checks are configured (tasks.checks in fairlead.yaml)")
		return err
	}
	if p, err = withoutOwn(ctx, t, p, from); err != nil {
		return err
	}
	results := &checking{t: t}
	if t.ChecksIn == ChecksInTask {
		return t.checkFolder(ctx, out, p, results)
	}
	govern, err := (Review{t}).governs(ctx, from, p.Commit)
	if err != nil {
		return err
	}
	first := t.checkCommit(ctx, out, p.Commit, results)
	if first != nil && !errors.As(first, new(*CheckFailed)) {
		return first
	}
	if len(govern.Files) > 0 {
		if _, err := fmt.Fprintf(out, "it changes files that decide what runs (%s): the checks run again with those of %s\n",
			someOf(govern.Files), t.Base); err != nil {
			return err
		}
		based, err := t.withBase(ctx, p, from, govern.Files)
		if err != nil {
			return err
		}
		results.base = true
		second := t.checkCommit(ctx, out, based, results)
		if second != nil && (first != nil || !errors.As(second, new(*CheckFailed))) {
			return second
		}
	} else if first != nil {
		return first
	}
	return t.notePassed(p.Tree)
}

// checkFolder runs the checks in the task's folder itself, where its agent can write what they run.
func (t Task) checkFolder(ctx context.Context, out io.Writer, before Picture, results *checking) error {
	if _, err := runSetup(ctx, t, out, t.Tree, setupFile(t), before.Tree); errors.As(err, new(*SetupFailed)) {
		return &CheckFailed{"", err} // the agent changed what is installed
	} else if err != nil {
		return err
	}
	if err := results.run(ctx, out, t.Tree); err != nil {
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
	return t.notePassed(after.Tree)
}

// checkCommit runs the checks on a commit, in their own checkout.
func (t Task) checkCommit(ctx context.Context, out io.Writer, commit string, results *checking) error {
	err := t.checkout(ctx, out, commit)
	if failed, is := errors.AsType[*SetupFailed](err); is { // the agent changed what is installed
		if err := results.keep(CheckResult{Command: failed.Command, Ended: time.Now().UTC(), Tail: failed.Error()}); err != nil {
			return err
		}
		return &CheckFailed{"", failed}
	} else if err != nil {
		return err
	}
	return results.run(ctx, out, t.checksDir())
}

// checkMerged runs the checks on content that is in no folder yet.
func (t Task) checkMerged(ctx context.Context, out io.Writer, tip, tree string) error {
	if _, err := fmt.Fprintf(out, "branch %s has moved; the checks run on the merged files\n", t.Base); err != nil {
		return err
	}
	commit, err := t.commit(ctx, byFairlead, tree, "what lands", tip)
	if err != nil {
		return err
	}
	if err := t.checkout(ctx, out, commit); err != nil {
		return err
	}
	return (&checking{t: t}).run(ctx, out, t.checksDir())
}

// withBase is a commit with the task's files, but with the base's version of some of them.
func (t Task) withBase(ctx context.Context, p Picture, from string, names []string) (string, error) {
	index := filepath.Join(t.Run, "based.index")
	defer os.Remove(index)
	env := append(slices.Clone(asStored), "GIT_INDEX_FILE="+index)
	git := func(feed string, args ...string) (string, error) {
		said, err := t.own().Run(ctx, worktree.GitWorkMax, env, writes(feed), args...)
		return strings.TrimSuffix(said, "\n"), err
	}
	list, err := git("", append([]string{"--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", from, "--"}, names...)...)
	if err != nil {
		return "", err
	}
	var entries strings.Builder
	none := strings.Repeat("0", len(p.Tree))
	for _, name := range names {
		fmt.Fprintf(&entries, "0 %s\t%s\x00", none, name)
	}
	for _, entry := range worktree.Zeroed(list) { // MODE TYPE ID\tNAME
		about, name, _ := strings.Cut(entry, "\t")
		if part := strings.Fields(about); len(part) == 3 {
			fmt.Fprintf(&entries, "%s %s\t%s\x00", part[0], part[2], name)
		}
	}
	if _, err := git("", "read-tree", p.Tree); err != nil {
		return "", err
	}
	if _, err := git(entries.String(), "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	tree, err := git("", "write-tree")
	if err != nil {
		return "", err
	}
	return t.commit(ctx, byFairlead, tree, "the task with the base's governing files", p.Commit)
}

func (t Task) checkedFile() string { return filepath.Join(t.Run, "checked") }

// notePassed notes that content has passed the checks, or that a person decides about it: so landing need not repeat them.
func (t Task) notePassed(tree string) error {
	return os.WriteFile(t.checkedFile(), []byte(t.passedAs(tree)), 0o600)
}

// passed reports whether content has passed the checks of the configuration in force.
func (t Task) passed(tree string) bool {
	text, err := os.ReadFile(t.checkedFile())
	return len(t.Checks) == 0 || err == nil && string(text) == t.passedAs(tree)
}

func (t Task) passedAs(tree string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q\n%q", t.Setup, t.Checks))
	return tree + " " + hex.EncodeToString(sum[:])
}

// checksTold are lines for the person who decides: where the checks ran, and what the second time said.
func (t Task) checksTold() (lines []string, err error) {
	if len(t.Checks) == 0 {
		return nil, nil
	}
	if t.ChecksIn == ChecksInTask {
		lines = append(lines, "the checks ran in the folder where its agent works (tasks.checks_in: task)")
	}
	all, err := (Review{t}).CheckResults()
	if err != nil {
		return nil, err
	}
	first, second := verdict(all, false), verdict(all, true)
	switch {
	case second == nil:
	case second.Passed && first.Passed:
		lines = append(lines, fmt.Sprintf("the checks passed with the files of %s that decide what runs, too", t.Base))
	case second.Passed:
		lines = append(lines, fmt.Sprintf("the checks FAILED with the task's own files that decide what runs (`%s`), and passed with those of %s",
			first.Command, t.Base))
	default:
		lines = append(lines, fmt.Sprintf("the checks passed with the task's own files that decide what runs only; with those of %s they FAILED: `%s`",
			t.Base, second.Command))
	}
	return lines, nil
}

// verdict is the last result of a pass over the checks; nil: there was none.
func verdict(all []CheckResult, base bool) (last *CheckResult) {
	for i := range all {
		if all[i].Base == base {
			last = &all[i]
		}
	}
	return last
}

// testsTold are lines about the tests that are changed or deleted: checks that pass may say less then.
func (t Task) testsTold(ctx context.Context, from, to string) (lines []string, err error) {
	said, err := t.ask(ctx, nil, "diff-tree", "-r", "-z", "--name-status", "--no-renames", from, to)
	if err != nil {
		return nil, err
	}
	fields := worktree.Zeroed(said)
	var changed, deleted []string
	for i := 0; i+1 < len(fields); i += 2 {
		switch status, name := fields[i], fields[i+1]; {
		case !isTest(name):
		case status == "D":
			deleted = append(deleted, name)
		case status != "A":
			changed = append(changed, name)
		}
	}
	if len(deleted) > 0 {
		lines = append(lines, "it deletes tests: "+someOf(deleted))
	}
	if len(changed) > 0 {
		lines = append(lines, "it changes tests: "+someOf(changed))
	}
	return lines, nil
}

// testNames and testFolders are how projects name tests, in lower case.
var (
	testNames = []string{
		"*_test.*", "test_*.*", "*_tests.*", "*.test.*", "*.spec.*", "*_spec.*", "*test.java", "*tests.java", "*test.kt", "*tests.cs",
		"*test.cs", "*test.php", "*tests.swift", "*.snap", "*.golden",
	}
	testFolders = []string{"test", "tests", "__tests__", "spec", "specs", "testdata", "__snapshots__", "e2e"}
)

func isTest(name string) bool {
	parts := strings.Split(strings.ToLower(name), "/")
	last := len(parts) - 1
	return slices.ContainsFunc(parts[:last], func(p string) bool { return slices.Contains(testFolders, p) }) ||
		slices.ContainsFunc(testNames, func(pattern string) bool {
			is, _ := path.Match(pattern, parts[last]) // the patterns are constant
			return is
		})
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
	Base    bool          `json:"base,omitempty"` // the governing files were those of the base
}

// CheckResults are the results of the newest checks, in order: of the task's files, and then, if they ran a second time, with the
// base's governing files. Commands after one that failed have none.
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

// checking is one run of the checks, whose results are kept as they come.
type checking struct {
	t    Task
	all  []CheckResult
	base bool // the files have the base's version of those that decide what runs
}

// run runs the commands in a folder, until one fails.
func (c *checking) run(ctx context.Context, out io.Writer, dir string) error {
	for _, line := range c.t.Checks {
		done, err := c.t.checkOne(ctx, out, dir, line)
		if err := errors.Join(c.keep(done), err); err != nil {
			return err
		}
	}
	return nil
}

// keep adds a result to those of this run.
func (c *checking) keep(done CheckResult) error {
	done.Base = c.base
	c.all = append(c.all, done)
	return file.StoreJSON(filepath.Join(c.t.Run, checksName), c.all)
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
