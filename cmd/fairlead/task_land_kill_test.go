package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// killingGit is a git that kills the daemon, which called it, at the call that has the words in the file "kill": before git does
// something, or after that. With a file "folder" it removes the task's folder first.
const killingGit = `#!/bin/sh
at=%[2]s
if [ -e "$at/kill" ] && read -r how task what < "$at/kill"; then
	case " $* " in
	*" $what "*)
		rm "$at/kill"
		[ "$how" != after ] || %[1]s "$@"
		[ "$how" != moved ] || mv -f "$GIT_DIR/refs/heads/main.lock" "$GIT_DIR/refs/heads/main"
		[ ! -e "$at/folder" ] || rm -rf "$at/repo/.agents/worktrees/$task" "$at/folder"
		kill -9 $PPID
		exit 1 ;;
	esac
fi
exec %[1]s "$@"
`

// A landing whose daemon is killed is tried again by the next one, from the look whether it has landed: it lands once, the agent does not
// work again, and no person is asked again. The same holds if the folder is gone by then. Each point meets one of the two;
// FAIRLEAD_LONG=ci tries both at each point. TestLandKilled of git/task has the points alone.
func TestLandingKilled(t *testing.T) {
	t.Parallel()
	at := t.TempDir()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(at, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o700); err != nil { //nolint:gosec // one of them is a program
			t.Fatal(err)
		}
	}
	put("bin/git", fmt.Sprintf(killingGit, real, at))
	dir, git := taskRepo(t, "*\n!*.txt\n!.gitignore\n")
	if err := os.Symlink(dir, filepath.Join(at, "repo")); err != nil {
		t.Fatal(err)
	}
	s := &rig{t: t, dir: dir, path: filepath.Join(at, "bin")}
	s.begin(map[string]string{
		"fairlead.yaml": `version: 1
agents:
  ada: {driver: exec, command: [sh, -c, 'echo "$RUN_ID" >> ` + at +
			`/worked; echo "$RUN_ID" >> $RUN_ID.txt; git add $RUN_ID.txt; git commit -q -m work'], workspace: ada}
`,
		"ada/.keep": "",
	})
	status := func(id string) view.TaskView {
		out, _ := s.fairlead("tasks", "--json")
		var said struct{ Tasks []view.TaskView }
		_ = json.Unmarshal([]byte(out), &said) // it is asked again
		for _, one := range said.Tasks {
			if one.ID == id {
				return one
			}
		}
		return view.TaskView{}
	}
	n := 0
	ways := []string{"", "folder"}
	for i, point := range []string{"before commit-tree", "before read-tree -m", "moved show-ref", "after for-each-ref"} {
		way := i % len(ways)
		for _, with := range testsize.Pick(ways[way:way+1], ways, ways) {
			n++
			id := fmt.Sprintf("T%d", n)
			s.must("task", "Write a file", "--agent", "ada")
			wait.Until(t, id+" is shown", func() bool { return status(id).Status == view.TaskNeedsYou })
			if with == "folder" {
				put("folder", "")
			}
			how, what, _ := strings.Cut(point, " ")
			put("kill", how+" "+id+" "+what+"\n")
			_, _ = s.fairlead("merge", id, "--no-wait") // the daemon may die meanwhile
			_ = s.daemon.Wait()
			s.daemon = nil
			s.up()
			last := wait.Value(t, id+" has landed", func() (view.TaskView, error) { return status(id), nil }, func(v view.TaskView) bool {
				return v.Status == view.TaskDone || v.Status == view.TaskNeedsYou || v.Status == view.TaskFailed ||
					v.Status == view.TaskWorking
			})
			if _, err := os.Stat(filepath.Join(at, "kill")); err == nil {
				t.Fatalf("%s: the landing was not killed", point)
			}
			if last.Status != view.TaskDone || last.LandedCommit != strings.TrimSpace(git("rev-parse", "main")) {
				t.Errorf("killed %s, with %q: %+v", point, with, last)
			}
			if got := strings.Count(git("log", "--format=%B", "main"), "Task: "+id+"\n"); got != 1 {
				t.Errorf("killed %s, with %q: it has landed %d times", point, with, got)
			}
			worked, err := os.ReadFile(filepath.Join(at, "worked"))
			if err != nil || strings.Count(string(worked), id+"\n") != 1 {
				t.Errorf("killed %s, with %q: the agent worked again: %q, %v", point, with, worked, err)
			}
		}
	}
}
