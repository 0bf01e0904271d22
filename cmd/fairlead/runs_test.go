package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/runs"
	"github.com/fairlead-dev/fairlead/files/runstate"
)

// leaveRun leaves a run's file behind, as the seed's tool does.
func leaveRun(t *testing.T, repo, id, status string, changed time.Time) {
	t.Helper()
	at := changed.UTC().Format("2006-01-02T15:04:05.000000Z")
	text := fmt.Sprintf(`{"run_id": %q, "workflow_name": "flow", "repo_dir": %q, "reports_dir": "", "manual_inputs_dir": "", "created_at": %q, "updated_at": %q,
  "steps": {"code": {"status": %q, "attempts": 1, "iteration_count": 0, "report_path": null, "started_at": %q, "ended_at": null, "last_error": null,
  "artifacts": ["a.txt"], "metrics": {"lines": "3"}, "logs": [], "manual_input_path": null, "blocked_by_loop": null}}}`, id, repo, at, at,
		status, at)
	dir := runs.RunFolder(repo, id)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, runstate.RunStateName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Without a daemon the files are read: runs of any program with the seed's schema are listed,
// and one that cannot be read is told and left alone.
func TestRunsFromFiles(t *testing.T) {
	t.Parallel()
	repo := t.TempDir()
	now := time.Now()
	leaveRun(t, repo, "old", "COMPLETED", now.Add(-time.Hour))
	leaveRun(t, repo, "new", "FAILED", now)
	if err := os.MkdirAll(runs.RunFolder(repo, "torn"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(runs.RunFolder(repo, "torn"), runstate.RunStateName), []byte(`{"run_id": "to`),
		0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run([]string{"run", "list", "--dir", repo, "--json"}, nil, &out, &errs); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	var all runs.Listed
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Runs) != 2 || all.Runs[0].ID != "new" || all.Runs[0].Status != "failed" || all.Runs[1].Status != "completed" ||
		len(all.Faults) != 1 || all.Live {
		t.Errorf("%s", &out)
	}
	if newest, err := runs.NewestRun(repo); err != nil || newest != "new" {
		t.Errorf("the run that changed last: %q, %v", newest, err)
	}
	out.Reset()
	if code := run([]string{"run", "show", "old", "--dir", repo}, nil, &out, &errs); code != cli.ExitDone ||
		!strings.Contains(out.String(), "measure lines = 3") {
		t.Errorf("exit code %d: %s%s", code, &out, &errs)
	}
	for _, id := range []string{"nobody", "../old", ".."} {
		if code := run([]string{"run", "show", id, "--dir", repo}, nil, &out, &errs); code != cli.ExitUsage {
			t.Errorf("runs %s: exit code %d", id, code)
		}
	}
}

// A mistyped prune archives no runs.
func TestPruneRefuses(t *testing.T) {
	t.Parallel()
	repo := t.TempDir()
	leaveRun(t, repo, "r1", "RUNNING", time.Now().Add(-time.Hour))
	for code, calls := range map[int][][]string{
		cli.ExitUsage:   {{}, {"--keep", "-1"}, {"--older-than", "soon"}, {"--older-than", "-3d"}, {"--older-than", "NaNd"}},
		cli.ExitRefused: {{"--keep", "0", "--all"}}, // it would go on under who tidies up
	} {
		for _, words := range calls {
			var out, errs bytes.Buffer
			if got := run(append([]string{"run", "prune", "--dir", repo}, words...), nil, &out, &errs); got != code {
				t.Errorf("%q: exit code %d, want %d: %s", words, got, code, &errs)
			}
		}
	}
	a := &cli.App{Dir: repo}
	if err := runs.DeleteArchived(a, runs.RunFolder(repo, "r1")); err == nil || !cli.Exists(runs.RunFolder(repo, "r1")) {
		t.Error("what is not in the archive was deleted")
	}
	archived := filepath.Join(repo, ".agents", "archive", "runs", "old")
	if err := os.MkdirAll(archived, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := runs.DeleteArchived(a, runs.RunFolder(repo, "r1")); err == nil || !cli.Exists(runs.RunFolder(repo, "r1")) {
		t.Error("what is not in the archive was deleted")
	}
	if err := runs.DeleteArchived(a, archived); err != nil || cli.Exists(archived) {
		t.Errorf("what is in the archive was not deleted: %v", err)
	}
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "0.5d": 12 * time.Hour, "90m": 90 * time.Minute} {
		var d cli.Days
		if err := d.Set(text); err != nil || time.Duration(d) != want {
			t.Errorf("%s: %v, %v", text, time.Duration(d), err)
		}
	}
}
