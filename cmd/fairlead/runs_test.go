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

	"github.com/fairlead-dev/fairlead/interop"
)

// leaveRun leaves a run's file behind, as the seed's tool does.
func leaveRun(t *testing.T, repo, id, status string, changed time.Time) {
	t.Helper()
	at := changed.UTC().Format("2006-01-02T15:04:05.000000Z")
	text := fmt.Sprintf(`{"run_id": %q, "workflow_name": "flow", "repo_dir": %q, "reports_dir": "", "manual_inputs_dir": "", "created_at": %q, "updated_at": %q,
  "steps": {"code": {"status": %q, "attempts": 1, "iteration_count": 0, "report_path": null, "started_at": %q, "ended_at": null, "last_error": null,
  "artifacts": ["a.txt"], "metrics": {"lines": "3"}, "logs": [], "manual_input_path": null, "blocked_by_loop": null}}}`, id, repo, at, at, status, at)
	dir := runFolder(repo, id)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, interop.RunStateName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Without a daemon the files are read: runs of any program with the seed's schema are listed,
// and one that cannot be read is told and left alone.
func TestRunsFromFiles(t *testing.T) {
	repo := t.TempDir()
	now := time.Now()
	leaveRun(t, repo, "old", "COMPLETED", now.Add(-time.Hour))
	leaveRun(t, repo, "new", "FAILED", now)
	if err := os.MkdirAll(runFolder(repo, "torn"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(runFolder(repo, "torn"), interop.RunStateName), []byte(`{"run_id": "to`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run([]string{"runs", "--dir", repo, "--json"}, nil, &out, &errs); code != exitDone {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	var all listed
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Runs) != 2 || all.Runs[0].ID != "new" || all.Runs[0].Status != "failed" || all.Runs[1].Status != "completed" || len(all.Faults) != 1 || all.Live {
		t.Errorf("%s", &out)
	}
	if newest, err := newestRun(repo); err != nil || newest != "new" {
		t.Errorf("the run that changed last: %q, %v", newest, err)
	}
	out.Reset()
	if code := run([]string{"runs", "old", "--dir", repo}, nil, &out, &errs); code != exitDone || !strings.Contains(out.String(), "measure lines = 3") {
		t.Errorf("exit code %d: %s%s", code, &out, &errs)
	}
	for _, id := range []string{"nobody", "../old", ".."} {
		if code := run([]string{"runs", id, "--dir", repo}, nil, &out, &errs); code != exitUsage {
			t.Errorf("runs %s: exit code %d", id, code)
		}
	}
}

// Prune puts completed runs away, and nothing else unless it is told to.
func TestPrune(t *testing.T) {
	repo := t.TempDir()
	now := time.Now()
	for n, status := range []string{"COMPLETED", "COMPLETED", "FAILED", "RUNNING", "WAITING_ON_HUMAN", "COMPLETED"} {
		leaveRun(t, repo, fmt.Sprintf("r%d-%s", n, status[:4]), status, now.Add(-time.Duration(n)*24*time.Hour))
	}
	prune := func(words ...string) map[string]string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(append([]string{"runs", "prune", "--json", "--dir", repo}, words...), nil, &out, &errs); code != exitDone {
			t.Fatalf("%q: exit code %d: %s", words, code, &errs)
		}
		var said struct{ Runs []pruned }
		if err := json.Unmarshal(out.Bytes(), &said); err != nil {
			t.Fatal(err)
		}
		did := map[string]string{}
		for _, p := range said.Runs {
			if p.Did != "kept" {
				did[p.RunID] = p.Did
			}
		}
		return did
	}
	if did := prune("--older-than", "12h", "--dry-run"); len(did) != 2 || did["r1-COMP"] != "archived" || did["r5-COMP"] != "archived" {
		t.Errorf("by age: %v", did)
	}
	if did := prune("--keep", "2", "--dry-run"); len(did) != 1 || did["r5-COMP"] != "archived" {
		t.Errorf("by number: %v", did)
	}
	if did := prune("--keep", "0", "--older-than", "30d"); len(did) != 0 {
		t.Errorf("none is that old: %v", did)
	}
	if found, _ := runFiles(repo); len(found) != 6 {
		t.Fatalf("%d runs are left of 6, and nothing was to be done", len(found))
	}
	if did := prune("--older-than", "0.5d"); len(did) != 2 {
		t.Errorf("by age: %v", did)
	}
	for _, id := range []string{"r1-COMP", "r5-COMP"} {
		if !exists(filepath.Join(repo, ".agents", "archive", id, interop.RunStateName)) || exists(runFolder(repo, id)) {
			t.Errorf("%s is not in the archive", id)
		}
	}
	leaveRun(t, repo, "r1-COMP", "COMPLETED", now.Add(-48*time.Hour)) // a name that was used again
	if prune("--keep", "1"); !exists(filepath.Join(repo, ".agents", "archive", "r1-COMP.2", interop.RunStateName)) {
		t.Error("the second of that name is not in the archive")
	}
	if did := prune("--keep", "0", "--delete", "--all"); len(did) != 4 || did["r2-FAIL"] != "deleted" {
		t.Errorf("told to: %v", did)
	}
	if !exists(filepath.Join(repo, ".agents", "archive", "r1-COMP")) {
		t.Error("what was archived is gone")
	}
	for _, words := range [][]string{{}, {"--keep", "-1"}, {"--older-than", "soon"}, {"--older-than", "-3d"}} {
		var out, errs bytes.Buffer
		if code := run(append([]string{"runs", "prune", "--dir", repo}, words...), nil, &out, &errs); code != exitUsage {
			t.Errorf("%q: exit code %d", words, code)
		}
	}
}
