package runstate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Seed 004, Artifact Paths: artifacts are relative to the repository. An absolute one inside is made so; one outside stays as it is
// given, and a warning names it.
func TestPathsOfArtifacts(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"repo/docs", "repo/.agents/worktrees/w/docs", "other"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(top, "repo"), filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(top, name) }
	tree := ReportFor{RunID: theStep.RunID, StepID: theStep.StepID, Repo: in("repo/.agents/worktrees/w"), Main: in("repo")}
	plain := ReportFor{RunID: theStep.RunID, StepID: theStep.StepID, Repo: in("repo")}
	for _, c := range []struct {
		of          ReportFor
		given, want string
		outside     bool
	}{
		{plain, "PLAN.md", "PLAN.md", false},
		{plain, "./docs/a.md", "./docs/a.md", false},
		{plain, "docs/../a.md", "docs/../a.md", false},
		{plain, in("repo/PLAN.md"), "PLAN.md", false},
		{plain, in("repo/docs/../a.md"), "a.md", false},
		{plain, in("repo"), ".", false},
		{plain, in("repo/.agents/runs/r/artifacts/a.json"), ".agents/runs/r/artifacts/a.json", false},
		{plain, in("repo/not/there/yet.md"), "not/there/yet.md", false},
		{plain, in("link/docs/a.md"), in("link/docs/a.md"), true}, // what an agent names is not opened
		{plain, in("other/a.md"), in("other/a.md"), true},
		{plain, in("repository/a.md"), in("repository/a.md"), true},
		{plain, in("repo") + "/../other/a.md", in("repo") + "/../other/a.md", true},
		{plain, "../other/a.md", "../other/a.md", true},
		{plain, "/etc/passwd", "/etc/passwd", true},
		{tree, in("repo/.agents/worktrees/w/docs/a.md"), "docs/a.md", false},
		{tree, "docs/a.md", "docs/a.md", false},
		{tree, in("repo/.agents/runs/r/artifacts/a.json"), in("repo/.agents/runs/r/artifacts/a.json"), false},
		{tree, in("other/a.md"), in("other/a.md"), true},
		{theStep, "/anywhere/a.md", "/anywhere/a.md", false},
	} {
		list, _ := json.Marshal([]string{"first.md", c.given})
		got, err := ParseReport("r.json", []byte(reportHead+`"status":"COMPLETED","logs":["one"],"artifacts":`+string(list)+"}"), c.of)
		if err != nil || !slices.Equal(got.Artifacts, []string{"first.md", c.want}) {
			t.Errorf("%s: %q, %v; want %q", c.given, got.Artifacts, err, c.want)
		}
		warned := len(got.Logs) == 2 && got.Logs[1] == "warning: "+got.Warning && strings.Contains(got.Warning, c.given)
		if warned != c.outside || !c.outside && (got.Warning != "" || len(got.Logs) != 1) {
			t.Errorf("%s: warning %q, logs %q", c.given, got.Warning, got.Logs)
		}
	}
	got, err := ParseReport("r.json",
		[]byte(reportHead+`"status":"FAILED","artifacts":["/etc/a","/etc/b","/etc/c","/etc/d","/etc/e","/etc/`+strings.Repeat("x", 3000)+
			`"]}`), plain)
	if err != nil || len(got.Warning) > 600 || !strings.Contains(got.Warning, "and 3 more") || strings.Contains(got.Why, "warning") {
		t.Errorf("many: %d bytes of warning, %q, %v", len(got.Warning), got.Why, err)
	}
}
