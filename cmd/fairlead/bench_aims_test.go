package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// ran is the time that a program takes in a folder.
func ran(b *testing.B, dir string, words ...string) time.Duration {
	b.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = dir
	began := time.Now()
	if said, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%q: %v: %s", words, err, said)
	}
	return time.Since(began)
}

// BenchmarkRun measures twenty steps that do nothing, one after the other, with `fairlead run` and no daemon, beside a
// loop of a shell that starts the same programs.
func BenchmarkRun(b *testing.B) {
	const steps = 20
	fairlead, _ := built(b)
	dir := b.TempDir()
	var flow strings.Builder
	flow.WriteString("name: chain\nsteps:\n")
	for n := range steps {
		fmt.Fprintf(&flow, "  - {id: s%02d, command: [\"true\"]%s}\n", n,
			map[bool]string{true: fmt.Sprintf(", needs: [s%02d]", n-1)}[n > 0])
	}
	if err := os.WriteFile(filepath.Join(dir, "flow.yaml"), []byte(flow.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	bare := fmt.Sprintf("for n in $(seq %d); do /bin/true; done", steps)
	var p pairs
	for b.Loop() {
		p.measure(
			func() time.Duration { return ran(b, dir, fairlead, "run", "flow.yaml", "--dir", dir) },
			func() time.Duration { return ran(b, dir, "sh", "-c", bare) })
	}
	p.report(b, "run", "bare-loop")
}

// BenchmarkLists measures `ps`, `tasks` and `inbox` of a team with 200 agents and 1,000 tasks, which wait for the end of a
// hold.
func BenchmarkLists(b *testing.B) {
	fairlead, empty := built(b)
	const agents, tasks = 200, 1000
	var yaml strings.Builder
	yaml.WriteString("version: 1\nagents:\n")
	for n := range agents {
		fmt.Fprintf(&yaml, "  a%d: {driver: exec, command: [\"true\"], workspace: a%d}\n", n, n)
	}
	h := newBenchRig(b, fairlead, map[string]string{"fairlead.yaml": yaml.String()})
	committed(b, h.dir)
	h.up()
	c, err := apiclient.Dial(h.dir)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Hold(b.Context(), "measured"); err != nil {
		b.Fatal(err)
	}
	for n := range tasks {
		if _, err := c.Runs.Start(b.Context(),
			view.RunFlags{Task: &view.TaskFlags{Text: fmt.Sprintf("task %d", n), Agent: fmt.Sprintf("a%d", n%agents)}}); err != nil {
			b.Fatalf("task %d: %v", n, err)
		}
	}
	all := map[string]*pairs{"ps": {}, "tasks": {}, "inbox": {}}
	for b.Loop() {
		for verb, p := range all {
			p.measure(func() time.Duration { return ran(b, h.dir, fairlead, verb) }, func() time.Duration { return timed(b, empty) })
		}
	}
	for verb, p := range all {
		b.ReportMetric(millis(middle(p.ours)), "ms/"+verb)
	}
	b.ReportMetric(0, "ns/op")
}

// committed makes a repository of a folder, with a commit of all its files.
func committed(b *testing.B, dir string) {
	b.Helper()
	ran(b, dir, "git", "init", "-q", "-b", "main")
	ran(b, dir, "git", "config", "user.name", "bench")
	ran(b, dir, "git", "config", "user.email", "bench@example.com")
	ran(b, dir, "git", "add", "-A")
	ran(b, dir, "git", "commit", "-q", "-m", "all")
}

// inShell is what a person types for a task without Fairlead. The agent is a line of a shell.
const inShell = `set -e
for n in $(seq %d); do
	git worktree add -q -b by-hand "$1"
	cd "$1"
	sleep 0.01; echo x > by-hand-$2-$n.txt
	git add .
	git commit -q -m work
	cd "$OLDPWD"
	git merge -q --squash by-hand
	git commit -q -m landed
	git worktree remove --force "$1"
	git branch -q -D by-hand
done
`

// BenchmarkTasks measures twelve tasks whose agent needs 10 ms, from the first `fairlead task` until the last has landed, beside the same
// git commands in a shell, in a repository of 1,000 files. Each task is approved as soon as it asks.
func BenchmarkTasks(b *testing.B) {
	const tasks, files = 12, 1000
	fairlead, _ := built(b)
	h := newBenchRig(b, fairlead, map[string]string{
		".gitignore": ".*\n/coder\nfairlead.yaml\n",
		"fairlead.yaml": "version: 1\nagents:\n  coder: {driver: exec, command: [sh, -c, 'sleep 0.01; echo x > by-$RUN_ID.txt'], " +
			"workspace: coder, instances: 3}\n",
	})
	for n := range files {
		if err := os.WriteFile(filepath.Join(h.dir, fmt.Sprintf("f%d.txt", n)), fmt.Appendf(nil, "%d\n", n), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	committed(b, h.dir)
	h.up()
	c, err := apiclient.Dial(h.dir)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	total := 0
	ours := func() time.Duration {
		total += tasks
		began := time.Now()
		for range tasks {
			ran(b, h.dir, fairlead, "task", "Write a file", "--agent", "coder")
		}
		wait.Until(b, "all tasks have landed", func() bool {
			all, err := c.Runs.List(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			done := 0
			for _, r := range all {
				switch r.Task.Status {
				case view.TaskDone:
					done++
				case view.TaskNeedsYou:
					if _, err := c.Runs.Merge(b.Context(), r.ID, api.MergeBody{}); err != nil {
						b.Fatal(err)
					}
				}
			}
			return done == total
		})
		return time.Since(began)
	}
	tree := filepath.Join(b.TempDir(), "tree")
	var p pairs
	for n := 0; b.Loop(); n++ {
		p.bare = append(p.bare, ran(b, h.dir, "sh", "-c", fmt.Sprintf(inShell, tasks), "sh", tree, fmt.Sprint(n)))
		p.ours = append(p.ours, ours())
	}
	p.report(b, "twelve-tasks", "shell")
}

// BenchmarkTaskStart measures from the order for a task until its agent runs in the task's folder, in a repository of
// 100,000 files, beside `git worktree add`; and what the first task's folder takes on the disk, and what all tasks share.
func BenchmarkTaskStart(b *testing.B) {
	fairlead, _ := built(b)
	const folders, each = 1000, 100
	h := newBenchRig(b, fairlead, map[string]string{
		"fairlead.yaml":     "version: 1\nagents:\n  coder: {driver: script, script: sleep.script.yaml, instances: 8}\n",
		"sleep.script.yaml": restful,
	})
	for d := range folders {
		dir := filepath.Join(h.dir, fmt.Sprintf("d%03d", d))
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		for f := range each {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%02d.txt", f)), fmt.Appendf(nil, "%d %d\n", d, f), 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	committed(b, h.dir)
	h.up()
	c, err := apiclient.Dial(h.dir)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	trees := b.TempDir()
	var ours, bare []time.Duration
	var folder, shared, worktree int64
	for n := 0; b.Loop(); n++ {
		tree := filepath.Join(trees, fmt.Sprint(n))
		bare = append(bare, ran(b, h.dir, "git", "worktree", "add", "--detach", tree))
		began := time.Now()
		run, err := c.Runs.Start(b.Context(), view.RunFlags{Task: &view.TaskFlags{Text: "sleep", Agent: "coder"}})
		if err != nil {
			b.Fatal(err)
		}
		wait.Until(b, "its agent runs", func() bool {
			shown, err := c.Runs.Show(b.Context(), run.ID)
			if err != nil {
				b.Fatal(err)
			}
			for _, s := range shown.Steps {
				if s.Session != "" {
					return true
				}
			}
			return false
		})
		ours = append(ours, time.Since(began))
		if n == 0 {
			folder, shared = onDisk(run.Task.Worktree), onDisk(filepath.Join(h.dir, ".fairlead", "git"))
			worktree = onDisk(tree) + onDisk(filepath.Join(h.dir, ".git", "worktrees"))
		}
	}
	b.ReportMetric(float64(folder)/1e6, "MB-of-a-task")
	b.ReportMetric(float64(shared)/1e6, "MB-shared-by-tasks")
	b.ReportMetric(float64(worktree)/1e6, "MB-of-a-worktree")
	b.ReportMetric(millis(middle(ours)), "ms/task-start")
	b.ReportMetric(millis(middle(bare)), "ms/worktree-add")
	b.ReportMetric(middle(ours).Seconds()/middle(bare).Seconds(), "task-start/worktree-add")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkBuild measures a build from an empty cache, and the size of the program as it is shipped.
func BenchmarkBuild(b *testing.B) {
	var took []time.Duration
	var size int64
	for b.Loop() {
		dir := b.TempDir()
		out := filepath.Join(dir, "fairlead")
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOCACHE="+filepath.Join(dir, "cache"))
		var said bytes.Buffer
		cmd.Stderr = &said
		began := time.Now()
		if err := cmd.Run(); err != nil {
			b.Fatalf("%v: %s", err, &said)
		}
		took = append(took, time.Since(began))
		info, err := os.Stat(out)
		if err != nil {
			b.Fatal(err)
		}
		size = info.Size()
	}
	b.ReportMetric(middle(took).Seconds(), "s/build")
	b.ReportMetric(float64(size)/1e6, "MB-stripped")
	b.ReportMetric(0, "ns/op")
}
