package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// taskRepo makes a repository with a commit, for tasks.
func taskRepo(t *testing.T, ignore string) (dir string, git func(args ...string) string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git = func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git("init", "--quiet", "-b", "main")
	git("config", "user.name", "A Person")
	git("config", "user.email", "person@example.org")
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(ignore), 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", ".gitignore")
	git("commit", "--quiet", "-m", "first")
	return dir, git
}

// The daemon is killed again and again while tasks are worked on, checked, shown and landed. Each task lands once,
// with every line that its agent wrote, and the checks hold after every landing.
func TestTasksKilled(t *testing.T) {
	t.Parallel()
	const tasks, kills = 3, 8
	dir, git := taskRepo(t, "*\n!*.txt\n!.gitignore\n")
	s := newRigIn(t, dir, map[string]string{
		"fairlead.yaml": `version: 1
agents:
  ada: {driver: exec, command: [sh, -c, &work 'sleep 0.1; echo "whole $RUN_ID" >> $RUN_ID.txt; git add $RUN_ID.txt; git commit -q -m work'], workspace: ada}
  bob: {driver: exec, command: [sh, -c, *work], workspace: bob}
tasks: {checks: ["test -e $RUN_ID.txt && ! grep -L whole *.txt | grep ."]}
`,
		"ada/.keep": "", "bob/.keep": "",
	})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for i := range tasks {
		s.must("task", fmt.Sprintf("Write file %d", i+1), "--agent", []string{"ada", "bob"}[i%2])
	}
	list := func() (all []view.TaskView) {
		out, _ := s.fairlead("tasks", "--json")
		var said struct{ Tasks []view.TaskView }
		if err := json.Unmarshal([]byte(out), &said); err != nil {
			return nil
		}
		return said.Tasks
	}
	killed := 0
	wait.Until(t, "every task has landed", func() bool {
		done := 0
		for _, r := range list() {
			switch r.Status {
			case view.TaskDone:
				done++
			case view.TaskNeedsYou:
				_, _ = s.fairlead("merge", r.ID, "--no-wait")
			}
		}
		if killed < kills {
			wait.Pause(time.Duration(rnd.IntN(300)) * time.Millisecond) // the blow comes at any moment
			s.kill()
			s.up()
			killed++
		}
		return done == tasks
	})
	t.Logf("killed %d times", killed)
	log := git("log", "--format=%B", "main")
	for i := range tasks {
		id := fmt.Sprintf("T%d", i+1)
		if n := strings.Count(log, "Task: "+id+"\n"); n != 1 {
			t.Errorf("%s has landed %d times:\n%s", id, n, log)
		}
		if text := git("show", "main:"+id+".txt"); !strings.Contains(text, "whole "+id) {
			t.Errorf("%s: %q", id, text)
		}
	}
	if got := git("status", "--porcelain"); got != "" {
		t.Errorf("the checkout: %s", got)
	}
}
