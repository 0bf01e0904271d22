package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Folders of tasks that are done or dropped are named, the largest first, and no others.
func TestFolders(t *testing.T) {
	t.Parallel()
	var all []view.RunView
	for _, task := range []struct {
		id, status string
		bytes      int
	}{
		{"T1", view.TaskDone, 10},
		{"T2", view.TaskWorking, 10},
		{"T3", view.TaskDropped, 1 << 20},
		{"T4", view.TaskNeedsYou, 10},
		{"T5", view.TaskDone, 0},
	} {
		dir := t.TempDir()
		if task.bytes > 0 {
			if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, task.bytes), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, view.RunView{Task: &view.TaskView{ID: task.id, Status: task.status, Worktree: dir}})
	}
	found := foldersOf(t.Context(), append(all, view.RunView{}))
	if len(found) != 2 || !strings.HasPrefix(found[0].What, "T3 is dropped") || !strings.HasPrefix(found[1].What, "T1 is done") ||
		!strings.Contains(found[1].Do, "fairlead drop T1") {
		t.Errorf("%+v", found)
	}
}

// The program of the remote is asked who is signed in. What it answers and a missing remote are named.
func TestForge(t *testing.T) { //nolint:paralleltest // it sets PATH
	dir, bin := t.TempDir(), t.TempDir()
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	ask := func(gh string) Finding {
		t.Helper()
		if err := os.WriteFile(filepath.Join(bin, "gh"), []byte("#!/bin/sh\n"+gh+"\n"), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
		return lookAtForge(t.Context(), &cli.App{Dir: dir}, &config.Config{})
	}
	git("init", "--quiet")
	if f := ask("exit 1"); f.OK || !strings.Contains(f.What, "git remote add origin") {
		t.Errorf("without a remote: %+v", f)
	}
	git("remote", "add", "origin", "https://github.com/acme/shop.git")
	if f := ask(`echo '{"login":"ada","id":1,"type":"User"}'`); !f.OK || f.What != "gh is signed in as ada" {
		t.Errorf("signed in: %+v", f)
	}
	if f := ask("echo 'To get started with GitHub CLI, please run:  gh auth login' >&2; exit 4"); f.OK ||
		!strings.Contains(f.What, "gh is not signed in") || !strings.Contains(f.Do, "gh auth status") {
		t.Errorf("not signed in: %+v", f)
	}
}
