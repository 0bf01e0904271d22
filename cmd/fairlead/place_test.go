package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
)

// The workspace is found from any folder below it; an agent's worktree inside of .fairlead or .agents/worktrees is
// part of the workspace around it, also on a host whose repository has no fairlead.yaml. A task's checkout is part of the task's workspace.
func TestWorkspaceOf(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{
		"team/deep/er", "team/.fairlead/worktrees/coder/src", "team/.agents/worktrees/r1/src", "host/.fairlead",
		"host/.agents/worktrees/r1", "other/.agents/worktrees/r1", "bare/.fairlead", "bare/sub", "plain/sub",
		"team/.git/worktrees/team-T1", "team/.git/worktrees/mine", "team-T1/src", "own-T1/.fairlead", "mine", "plain/.git/worktrees/plain-T1",
		"plain-T1",
	} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{
		"team/fairlead.yaml", "team/.fairlead/worktrees/coder/fairlead.yaml",
		"team/.agents/worktrees/r1/fairlead.yaml", "host/.agents/worktrees/r1/fairlead.yaml", "other/.agents/worktrees/r1/fairlead.yaml",
	} {
		if err := os.WriteFile(filepath.Join(root, file), []byte("version: 1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range map[string]string{
		"team/.git/worktrees/team-T1/HEAD":   "ref: refs/heads/fairlead/T1-write-it\n",
		"team/.git/worktrees/mine/HEAD":      "ref: refs/heads/mine\n",
		"plain/.git/worktrees/plain-T1/HEAD": "ref: refs/heads/fairlead/T1-write-it\n",
		"team-T1/.git":                       "gitdir: " + root + "/team/.git/worktrees/team-T1\n",
		"own-T1/.git":                        "gitdir: ../team/.git/worktrees/team-T1\n",
		"mine/.git":                          "gitdir: " + root + "/team/.git/worktrees/mine\n",
		"plain-T1/.git":                      "gitdir: ../plain/.git/worktrees/plain-T1\n",
		"team-T1/fairlead.yaml":              "version: 1\n",
		"mine/fairlead.yaml":                 "version: 1\n",
	} {
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for from, want := range map[string]string{
		"team":                               "team",
		"team/deep/er":                       "team",
		"team/.fairlead":                     "team",
		"team/.fairlead/worktrees/coder/src": "team",
		"team/.agents/worktrees/r1/src":      "team",
		"host/.agents/worktrees/r1":          "host",
		"other/.agents/worktrees/r1":         "other/.agents/worktrees/r1", // nothing around it
		"bare/sub":                           "bare",
		"plain/sub":                          "plain/sub",
		"team-T1/src":                        "team", // a task is checked out there
		"own-T1":                             "own-T1",
		"mine":                               "mine",
		"plain-T1":                           "plain-T1", // of no team
	} {
		if got := cli.WorkspaceOf(filepath.Join(root, from)); got != filepath.Join(root, want) {
			t.Errorf("from %s: %s, not %s", from, got, want)
		}
	}
}
