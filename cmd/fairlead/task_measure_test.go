package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

const (
	measuredFiles     = 10_000
	measuredInstances = 8
)

// onDisk is what the files below a folder take on the disk.
func onDisk(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a file that is gone takes no room
		}
		if info, err := e.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes += st.Blocks * 512
			}
		}
		return nil
	})
	return bytes
}

// FAIRLEAD_TASKS_MEASURED=100 gives so many tasks to an agent of eight instances, which needs next to no time itself, in a
// repository of 10,000 files, and approves each as soon as it waits. Beside it the same with bare git in the same
// run: a worktree for each task, a commit, a merge. It prints time and disk, and requires that each task lands
// once, in the order of the approvals.
func TestTasksMeasured(t *testing.T) {
	number, err := strconv.Atoi(os.Getenv("FAIRLEAD_TASKS_MEASURED"))
	if err != nil || number < 1 {
		t.Skip("set FAIRLEAD_TASKS_MEASURED=100 to measure a hundred tasks")
	}
	dir, git := taskRepo(t, "/[a-z]*/\n.*/\nfairlead.yaml\n")
	for i := range measuredFiles {
		path := filepath.Join(dir, "D"+strconv.Itoa(i/100), fmt.Sprintf("f%d.txt", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, fmt.Appendf(nil, "file %d\n%s\n", i, strings.Repeat("x", 200)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("add", ".")
	git("commit", "--quiet", "-m", "ten thousand files")

	bare, bareDisk := bareTasks(t, dir, git, min(number, 20))

	newRigIn(t, dir, map[string]string{
		"fairlead.yaml": fmt.Sprintf("version: 1\nagents:\n  coder: {driver: exec, command: [sh, -c, 'echo x > T-$RUN_ID.txt'], workspace: coder, instances: %d}\n", measuredInstances),
		"coder/.keep":   "",
	})
	client, err := apiclient.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	began := time.Now()
	for i := range number {
		if _, err := client.Runs.Start(t.Context(),
			view.RunFlags{Task: &view.TaskFlags{Text: fmt.Sprintf("Task %d", i+1), Agent: "coder"}}); err != nil {
			t.Fatal(err)
		}
	}
	given := time.Since(began)
	var approved []string
	var disk int64 // of the first folder: it is removed when its task has landed
	done := 0
	for done < number {
		wait.Until(t, fmt.Sprintf("more than %d tasks have landed", done), func() bool {
			all, err := client.Runs.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			before := done
			done = 0
			for _, r := range all {
				switch r.Task.Status {
				case view.TaskDone:
					done++
				case view.TaskFailed:
					t.Fatalf("%s: %s", r.ID, r.Task.Why)
				case view.TaskNeedsYou:
					if slices.Contains(approved, r.ID) {
						continue
					}
					if disk == 0 {
						disk = onDisk(r.Task.Worktree)
					}
					if _, err := client.Runs.Answer(t.Context(), r.ID, task.StepApprove, view.StepAnswer{}); err != nil {
						t.Fatal(err)
					}
					approved = append(approved, r.ID)
				}
			}
			return done > before
		})
	}
	took := time.Since(began)
	landed := strings.Fields(git("log", "--reverse", "--format=%(trailers:key=Task,valueonly)", "main"))
	early := 0
	for i, id := range landed {
		if i < len(approved) && approved[i] != id {
			early++
		}
	}
	if early > 0 {
		t.Errorf("%d of %d tasks landed at another place than they were approved at: %q, %q", early, number, approved, landed)
	}
	if slices.Sort(landed); len(slices.Compact(landed)) != number {
		t.Errorf("%d tasks have landed", len(landed))
	}
	slices.Sort(bare)
	each, median := took/time.Duration(number), bare[len(bare)/2]
	t.Logf("| %d tasks, %d at a time | %v a task (%v until its folder is made) | %.1f of bare git (median %v) |", number, measuredInstances,
		each.Round(time.Millisecond),
		(given / time.Duration(number)).Round(time.Millisecond), float64(each)/float64(median), median.Round(time.Millisecond))
	t.Logf("| disk of a folder | %.1f MB | %.2f of a bare worktree |", float64(disk)/1e6, float64(disk)/float64(bareDisk))
}

// bareTasks measures the same work with git alone: a worktree, a commit and a merge for each task.
func bareTasks(t *testing.T, dir string, git func(args ...string) string, number int) (bare []time.Duration, bareDisk int64) {
	t.Helper()
	for i := range number {
		began := time.Now()
		name := fmt.Sprintf("bare%d", i)
		tree := filepath.Join(t.TempDir(), name)
		git("worktree", "add", "--quiet", "-b", name, tree)
		if err := os.WriteFile(filepath.Join(tree, "B"+name), []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		git("-C", tree, "add", ".")
		git("-C", tree, "commit", "--quiet", "-m", name)
		git("merge", "--quiet", "--no-ff", "-m", name, name)
		bare = append(bare, time.Since(began))
		bareDisk = onDisk(tree) + onDisk(filepath.Join(dir, ".git", "worktrees", name))
		git("worktree", "remove", "--force", tree)
	}
	return bare, bareDisk
}
