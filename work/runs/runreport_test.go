package runs

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// TestReportOfALostSession has the report of an earlier attempt, as a copy from the previous leader. It does not count for the
// session that was lost with that machine. One of a session of this machine counts.
func TestReportOfALostSession(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), ".agents/runs/r1")
	state := team.New(func(control.File) string { return "" })
	var touched team.Touched
	decide := func(run string, what any) {
		t.Helper()
		for ev, ok := (team.Event{At: time.Unix(1, 0), Run: run, What: what}), true; ok; ev, ok = state.Next(&touched, time.Unix(1, 0)) {
			changes, err := state.Decide(ev)
			if err != nil {
				t.Fatal(err)
			}
			for _, ch := range changes {
				touched.Note(ch)
				state.Apply(ch)
			}
		}
	}
	decide("", team.DaemonStarted{BootID: "boot", Leader: "b"})
	decide("", team.Configured{Places: 1})
	decide("r1", team.RunBegun{Asked: workflow.RunAsked{
		ID: "r1", Plan: workflow.Plan{Name: "p", Steps: []workflow.Step{{ID: "one", Command: []string{"true"}}}},
		Options: workflow.Options{MaxAttempts: 2, MaxIterations: 2, SideBySide: 4},
		RepoDir: filepath.Dir(dir), ReportsDir: filepath.Join(dir, "reports"), ManualInputsDir: filepath.Join(dir, "manual_inputs"),
		By: "ann",
	}})
	_, s, is := state.SessionOf("r1", "one")
	if !is {
		t.Fatal("the step has no session: ", state.StepWaits("r1", "one"))
	}
	report := state.Runs["r1"].ReportFile("one")
	text := `{"schema":"run_report@v0","run_id":"r1","step_id":"one","agent":"one","status":"COMPLETED","started_at":"2026-11-21T10:00:00.000000Z","ended_at":"2026-11-21T10:00:01.000000Z","artifacts":[]}`
	if err := os.MkdirAll(filepath.Dir(report), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(report, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := outside.Options{Log: slog.New(slog.DiscardHandler), Cluster: &outside.Cluster{Name: "b"}, Config: &config.Config{Dir: dir}}
	starter := sessions.New(nil, opts)
	c := New(nil, opts, starter)
	own := starter.PrivateTemp(s.ID) // the daemon was killed before it took what the step wrote in its view
	for _, name := range []string{"reports", "artifacts"} {
		if err := os.MkdirAll(filepath.Join(own, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{
		report:                      filepath.Join(own, "reports", filepath.Base(report)),
		filepath.Join(dir, "a.txt"): filepath.Join(own, "artifacts", "a.txt"),
	} {
		if from != report {
			if err := os.WriteFile(from, []byte("a"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b"} {
		counts := name == "b"
		state.Hosts.Leases = map[string]host.Lease{s.ID: {Token: host.Token{Session: s.ID, Host: name}, Home: true}}
		if got := c.WithReport(state, s, team.SessionEnded{}); (got.Report != nil) != counts || got.Fault != "" {
			t.Errorf("lost with %s: %+v", name, got)
		}
		if _, err := os.Stat(filepath.Join(dir, "artifacts", "a.txt")); (err == nil) != counts {
			t.Errorf("lost with %s: its artifact: %v", name, err)
		}
	}
}
