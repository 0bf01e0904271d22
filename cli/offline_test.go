package cli_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli/offline"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/crewfile"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/script"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/runfile"
	"github.com/fairlead-dev/fairlead/view"
)

// oldWorkspace copies the workspace that Fairlead wrote at commit 24eb993, before reasons had codes.
// The repository keeps the folders whose names begin with a dot under other names.
func oldWorkspace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../internal/test/oldmain/testdata/team")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fairlead", "agents", "claude"} {
		if err := os.Rename(filepath.Join(dir, name+"-folder"), filepath.Join(dir, "."+name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Each reason that the old journal has as a sentence only becomes a code, and the sentence stays.
func TestOldJournalHasCodes(t *testing.T) {
	t.Parallel()
	j, done, err := offline.Journal(t.Context(), oldWorkspace(t))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	found := map[string]bool{}
	for rec, err := range j.Read(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		ch, err := loop.ChangeOf(rec)
		if err != nil {
			t.Fatal(err)
		}
		if s := ch.Body.Session; s != nil && s.Ending != "" {
			found[fmt.Sprintf("session %s: %s", s.EndReason, s.Ending)] = true
		}
		if run := ch.Body.Run; run != nil && run.Head != nil && run.Head.Stage == workflow.Paused {
			found[fmt.Sprintf("pause %s: %s", run.Head.PauseReason, run.Head.Why)] = true
		}
		if set := ch.Body.Turn; set != nil && set.Body.Head != nil && set.Body.Head.Lease.Why != "" {
			found[fmt.Sprintf("wait %s: %s", set.Body.Head.Lease.WaitReason, set.Body.Head.Lease.Why)] = true
		}
	}
	want := []string{
		"pause limit: limit reached: cost_per_day_usd 0.2 (0.30 used) of run waived",
		"pause limit: limit reached: cost_per_day_usd 0.5 (0.70 used) of spender",
		"session limit: limit reached: cost_per_day_usd 0.5 (0.70 used) of spender",
		"session limit: limit reached: session 1s",
		"session nothing_to_tell: nobody has anything to tell it in a channel",
		"session put_to_sleep: put to sleep by root",
		"session shutdown: fairlead was asked to stop",
		"wait permission: it asks for permission: May I look?",
	}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
		t.Errorf("decoded\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The agents, runs, crew documents and dispatch folder of the old workspace show the states and the
// sentences that the old version showed.
func TestOldWorkspaceIsRead(t *testing.T) {
	t.Parallel()
	dir := oldWorkspace(t)
	conf, err := config.Load(dir, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	r, err := offline.Open(t.Context(), conf, map[string]driver.Driver{"script": script.Driver{}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for agent, want := range map[string]string{
		"julian":  "julian-1 cancelled put to sleep by root",
		"asks":    "asks-1 cancelled fairlead was asked to stop",
		"spender": "spender-1 cancelled limit reached: cost_per_day_usd 0.5 (0.70 used) of spender",
		"brief":   "brief-1 cancelled limit reached: session 1s",
		"stopped": "stopped-1 cancelled fairlead was asked to stop",
		"works":   "works-1 cancelled fairlead was asked to stop",
		"reports": "reports-2 ok , reports-1 ok ",
		"denied":  "denied-1 ok 1 call was denied: Bash rm -rf .",
		"talks":   "talks-2 ok , talks-1 cancelled nobody has anything to tell it in a channel",
		"waits":   "waits-1 cancelled fairlead was asked to stop",
	} {
		why, err := r.Why(t.Context(), agent)
		if err != nil {
			t.Fatal(err)
		}
		var past []string
		for _, s := range why.Sessions {
			past = append(past, s.ID+" "+s.Outcome+" "+s.Why)
		}
		if got := strings.Join(past, ", "); got != want || why.Agent.DesiredState != "pause" || why.Agent.CurrentState != "pause" {
			t.Errorf("%s is %s, wants %s: %s\nwant %s", agent, why.Agent.CurrentState, why.Agent.DesiredState, got, want)
		}
	}
	oldRuns(t, r, dir)
	oldCrew(t, r, dir)
	folder, err := dispatchfolder.Open(filepath.Join(dir, ".claude", "agent-state-machine", "one"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := folder.Session()
	if err != nil || s.Phase != dispatch.Ready || s.Lead != "talks" || s.Mode != dispatch.Orchestrator {
		t.Errorf("the dispatch folder: %+v %v", s, err)
	}
}

func oldRuns(t *testing.T, r *offline.Reader, dir string) {
	t.Helper()
	want := map[string]string{
		"cut":     "running driven ",
		"person":  "waiting driven ",
		"waived":  "waiting paused limit reached: cost_per_day_usd 0.2 (0.30 used) of run waived",
		"paused":  "waiting paused limit reached: cost_per_day_usd 0.5 (0.70 used) of spender",
		"reports": "completed driven ",
	}
	runs, err := r.Runs.List(t.Context())
	if err != nil || len(runs) != len(want) {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	for _, run := range runs {
		if got := run.Status + " " + run.Stage + " " + run.Why; got != want[run.ID] {
			t.Errorf("run %s is %q, want %q", run.ID, got, want[run.ID])
		}
		s, err := runfile.ReadRunState(filepath.Join(dir, ".agents", "runs", run.ID, "run_state.json"))
		if err != nil || s.RunID != run.ID || len(s.Steps) == 0 {
			t.Errorf("run_state.json of %s: %+v %v", run.ID, s, err)
		}
	}
	reports, err := r.Runs.Show(t.Context(), "reports")
	if err != nil || len(reports.Steps) != 2 || reports.Steps[1].Denied != "1 call was denied: Bash rm -rf ." {
		t.Errorf("run reports: %+v %v", reports.Steps, err)
	}
}

func oldCrew(t *testing.T, r *offline.Reader, dir string) {
	t.Helper()
	shown, err := r.Crew.Show(t.Context(), true)
	if err != nil || len(shown.Agents) != 2 || shown.Lead.State != view.LeadAsleep {
		t.Fatalf("the crew: %+v %v", shown, err)
	}
	for i, name := range []string{"Lyra", "Kael"} {
		b, err := os.ReadFile(filepath.Join(dir, ".fairlead", "agents", fmt.Sprintf("agent-%d.json", i+1)))
		if err != nil {
			t.Fatal(err)
		}
		doc, bare, err := crewfile.ReadDocument(b)
		if err != nil || bare || doc.Name != name || doc.Status != crew.Sleeping || *shown.Agents[i].Name != name {
			t.Errorf("%s: %+v %v, shown as %s", name, doc, err, *shown.Agents[i].Name)
		}
	}
}
