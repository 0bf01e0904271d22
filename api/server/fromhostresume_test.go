package server

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A program on another host does not continue a run with another workflow, listed or not: steps of both that have one id keep their
// results, so a step that a person approves would be over because of a step of the first. With the run's own workflow it may.
func TestHostResumesWithTheRunsWorkflow(t *testing.T) {
	s, dir, ask := fromHostTeam(t)
	other := "name: release\nsteps:\n  - {id: a, human_in_the_loop: true, command: [\"true\"]}\n  - {id: deploy, needs: [a], command: [\"true\"]}\n"
	if err := os.WriteFile(filepath.Join(dir, "release.yaml"), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	s.opts.Listed = append(s.opts.Listed, filepath.Join(dir, "release.yaml"))
	if code, text := ask(http.MethodPost, "/runs", `{"workflow":"nightly.yaml","run_id":"r1"}`); code != http.StatusCreated {
		t.Fatalf("%d %s", code, text)
	}
	if code, text := ask(http.MethodPost, "/runs/r1/cancel", ""); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	for _, body := range []string{
		`{"workflow":"release.yaml","start_at_step":"deploy"}`, `{"workflow":"release.yaml"}`, `{"workflow":"nightly.yaml"}`,
		`{"workflow":"other.yaml"}`,
	} {
		if code, text := ask(http.MethodPost, "/runs/r1/resume", body); code != http.StatusConflict ||
			problemText(t, text).Refusal.Row != "X10" || !strings.Contains(text, "leave it out") {
			t.Errorf("%s: %d %s", body, code, text)
		}
	}
	if code, text := ask(http.MethodPost, "/runs/r1/resume", `{"start_at_step":"a","max_attempts":1}`); code != http.StatusOK {
		t.Errorf("its own: %d %s", code, text)
	}
}
