package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// A setup that fails is named; one that hangs is ended with its task, and neither leaves a folder or a process.
func TestTaskSetup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ setup, status string }{
		"fails": {"echo no network; exit 7", view.TaskFailed},
		"hangs": {"sleep 86400 & touch began; wait", view.TaskQueued},
	} {
		t.Run(name, func(t *testing.T) {
			dir, git := taskRepo(t, "*\n!.gitignore\n")
			s := newRigIn(t, dir, map[string]string{
				"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: exec, command: ['true'], workspace: ada}\ntasks: {setup: ['" +
					c.setup + "']}\n",
				"ada/.keep": "",
			})
			s.must("task", "anything")
			client, err := apiclient.Dial(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			tree := filepath.Join(dir, ".agents", "worktrees", "T1")
			wait.Until(t, "its setup "+name, func() bool {
				r, err := client.Runs.Show(t.Context(), "T1")
				if err != nil {
					t.Fatal(err)
				}
				if c.status == view.TaskFailed {
					return r.Task.Status == view.TaskFailed && strings.Contains(r.Task.Why, "exit 7") && r.Task.FailedStep == "prepare"
				}
				return cli.Exists(filepath.Join(tree, "began"))
			})
			s.must("drop", "T1")
			if _, err := os.Lstat(tree); err == nil {
				t.Error("the folder is still there")
			}
			git("cat-file", "-e", task.Task{ID: "T1"}.Ref())
		})
	}
}

// Where no task can be given, the command says why and what to do, and leaves no folder, no run and no ref.
func TestTaskRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begin func(t *testing.T, dir string, git func(args ...string) string)
		args  []string
		want  string
	}{
		"no repository": {begin: func(t *testing.T, dir string, _ func(args ...string) string) {
			if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
		}, want: "git init"},
		"no commit": {begin: func(_ *testing.T, _ string, git func(args ...string) string) {
			git("checkout", "--quiet", "--orphan", "empty")
		}, want: "commit something"},
		"detached": {
			begin: func(_ *testing.T, _ string, git func(args ...string) string) { git("checkout", "--quiet", "--detach") },
			want:  "--base",
		},
		"submodules": {begin: func(t *testing.T, dir string, git func(args ...string) string) {
			if err := os.WriteFile(filepath.Join(dir, ".gitmodules"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			git("add", "--force", ".gitmodules")
			git("commit", "--quiet", "-m", "modules")
		}, want: "submodules"},
		"no base": {
			begin: func(*testing.T, string, func(args ...string) string) {}, args: []string{"--base", "none"},
			want: "no branch none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, git := taskRepo(t, "*\n!.gitignore\n")
			s := newRigIn(t, dir, map[string]string{
				"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: exec, command: ['true'], workspace: ada}\n",
				"ada/.keep":     "",
			})
			c.begin(t, dir, git)
			out, code := s.fairlead(append([]string{"task", "anything"}, c.args...)...)
			if code != cli.ExitRefused || !strings.Contains(out, c.want) {
				t.Errorf("exit code %d: %s", code, out)
			}
			for _, left := range []string{".agents/runs/T1", ".agents/worktrees/T1", ".git/refs/fairlead"} {
				if cli.Exists(filepath.Join(dir, left)) {
					t.Errorf("left: %s", left)
				}
			}
		})
	}
}
