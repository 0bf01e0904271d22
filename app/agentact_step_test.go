package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/runs"
	"github.com/fairlead-dev/fairlead/work/tools"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// SPEC W3: a step reports by a tool call. An invalid report is refused, and no file is written. The
// last valid report counts when the session has ended. A step without an agent can report, too. A
// caller without a step, or whose attempt has ended, cannot.
func TestReportStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "version: 1\nagents:\n  ada: {driver: exec, command: [sh, -c, 'while [ ! -e go ]; do sleep 0.02; done']}\n",
		map[string]string{
			".agents/prompts/work.md": "do the work",
			"flow.yaml": `name: shared
steps:
  - {id: build, agent: ada, prompt: work.md}
  - {id: check, agent: none, needs: [build], command: [sh, -c, 'while [ ! -e went ]; do sleep 0.02; done']}
`,
		})
	y := &runWorld{App: w.engine, t: t, dir: w.dir}
	<-y.Loop.Ready()
	one := 1
	y.start(view.RunFlags{Workflow: "flow.yaml", RunID: "r1", MaxAttempts: &one})
	step := func(id string) func(view.RunView) bool {
		return func(v view.RunView) bool {
			for i := range v.Steps {
				if v.Steps[i].ID == id {
					return v.Steps[i].Status == "RUNNING"
				}
			}
			return false
		}
	}
	y.until("r1", "ada works", step("build"))
	w.until("ada", "its process is there", func(v view.AgentView) bool { return v.Session != nil && v.Session.PID != 0 })
	ada := callerOf("ada", "ada-1")
	path := filepath.Join(w.dir, ".agents", "runs", "r1", "reports", "r1__build.json")
	for _, bad := range []runs.AgentReport{
		{},
		{Status: "PENDING"},
		{Status: "COMPLETED", Artifacts: []string{"<path>"}},
		{Status: "COMPLETED", Logs: []string{"<what you did>"}},
		{Status: "COMPLETED", Metrics: map[string]any{"x": "TBD"}},
	} {
		var no *table.Refusal
		if _, err := w.engine.Tools.ActReportStep(t.Context(), ada, bad); !errors.As(err, &no) || no.Row != "W3" {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("a report that was refused was written")
	}
	if _, err := w.engine.Tools.ActReportStep(t.Context(), ada, runs.AgentReport{Status: "FAILED", Logs: []string{"not yet"}}); err != nil {
		t.Error(err)
	}
	done, err := w.engine.Tools.ActReportStep(t.Context(), ada,
		runs.AgentReport{Status: "done", Artifacts: []string{"out/app"}, Metrics: map[string]any{"tests": 12, "cost_usd": 0.5}})
	if err != nil || done.Run != "r1" || done.Step != "build" || done.Status != "COMPLETED" {
		t.Errorf("the report returns %+v, %v", done, err)
	}
	w.write("go", "")
	y.until("r1", "the check runs", step("check"))
	var over *tools.SessionOver
	if _, err := w.engine.Tools.ActReportStep(t.Context(), ada, runs.AgentReport{Status: "COMPLETED"}); !errors.As(err, &over) {
		t.Errorf("after its session: %v", err)
	}
	y.until("r1", "its process is there", func(view.RunView) bool {
		pid := 0
		if err := w.engine.Loop.View(t.Context(), func(tm *team.Team) {
			if s := tm.Pool.Sessions["r1/check"]; s != nil {
				pid = s.PID
			}
		}); err != nil {
			t.Fatal(err)
		}
		return pid != 0
	})
	check := callerOf("check@r1", "check@r1-1")
	if err := w.engine.Tools.ActOpen(t.Context(), check); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"ask_human":  second(w.engine.Tools.ActAskHuman(t.Context(), check, tools.AgentQuestion{Text: "?"}, time.Second)),
		"set_status": w.engine.Tools.ActSetStatus(t.Context(), check, "checking"),
		"turn":       second(w.engine.Tools.ActTurnComplete(t.Context(), check, "", "")),
	} {
		if !loop.IsAnswer(err) {
			t.Errorf("%s of a step without an agent: %v", what, err)
		}
	}
	if here, err := w.engine.Tools.ActWhoIsHere(t.Context(), check, ""); err != nil || here.You.Run != "r1" || here.You.Step != "check" {
		t.Errorf("whoami returns %+v, %v", here.You, err)
	}
	if _, err := w.engine.Tools.ActReportStep(t.Context(), check,
		runs.AgentReport{Status: "COMPLETED", Logs: []string{"all is well"}}); err != nil {
		t.Error(err)
	}
	w.write("went", "")
	view := y.until("r1", "it is over", func(v view.RunView) bool { return v.Status == "completed" })
	for i := range view.Steps {
		if s := &view.Steps[i]; s.ID == "build" && (len(s.Artifacts) != 1 || s.Attempts != 1) {
			t.Errorf("the step ended as %+v", s)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), `"schema": "run_report@v0"`) || !strings.Contains(string(text), `"agent": "ada"`) {
		t.Errorf("the report is %s, %v", text, err)
	}
}
