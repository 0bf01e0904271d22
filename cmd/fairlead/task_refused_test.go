package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
)

// A task that is refused leaves no folder and no ref, also if the refusal comes after its folder was made.
func TestRefusedTaskLeavesNothing(t *testing.T) {
	t.Parallel()
	dir, _ := taskRepo(t, "*\n!.gitignore\n")
	s := newRigIn(t, dir, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  coder:\n    driver: exec\n    sandbox: \"off\"\n    command: [\"true\"]\n    workspace: coder\n",
	})
	for _, words := range [][]string{
		{"task", "anything", "--agent", "nobody"},
		{"task", "anything", "--agent", "coder", "--after", "T77"},
		{"task", "anything", "--agent", "coder", "--base", "nowhere"},
	} {
		if out, code := s.fairlead(words...); code != cli.ExitRefused {
			t.Errorf("%v: exit code %d: %s", words, code, out)
		}
		refs, err := exec.Command("git", "-C", dir, "for-each-ref", "refs/fairlead").Output()
		if err != nil || strings.TrimSpace(string(refs)) != "" {
			t.Errorf("%v left %s, %v", words, refs, err)
		}
		for _, folder := range []string{"runs", "worktrees"} {
			entries, _ := os.ReadDir(filepath.Join(dir, ".agents", folder))
			for _, e := range entries {
				if strings.Contains(e.Name(), "T1") {
					t.Errorf("%v left %s", words, e.Name())
				}
			}
		}
	}
}
