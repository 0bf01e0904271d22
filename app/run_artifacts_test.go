package app

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Seed 004, Artifact Paths: run_state.json has artifacts relative to the repository, however a step reported them. One outside stays,
// and the step's logs and the daemon's log name it. Steps that need the step are given absolute paths.
func TestArtifactsOfReports(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	y.settled()
	y.file("report.sh",
		saying+`say COMPLETED ",\"artifacts\":[\"PLAN.md\",\"$REPO_DIR/docs/a.md\",\"$ARTIFACTS_DIR/b.json\",\"/elsewhere/c.md\"]" > "$REPORT_PATH"`)
	flow := y.file("flow.yaml", `name: a
steps:
  - {id: one, command: [sh, report.sh]}
  - {id: two, needs: [one], when: '"docs/a.md" in steps.one.artifacts', command: [sh, -c, 'test "$DEP_ONE_ARTIFACTS" = "$REPO_DIR/PLAN.md,$REPO_DIR/docs/a.md,$ARTIFACTS_DIR/b.json,/elsewhere/c.md"']}
`)
	y.start(view.RunFlags{Workflow: flow, RunID: "r"})
	v := y.until("r", "it is over", func(v view.RunView) bool { return over(v) && !v.FileBehind })
	if v.Status != "completed" || v.Steps[1].Status != "COMPLETED" {
		t.Fatalf("%+v", v.Steps)
	}
	state, err := runstate.ReadRunState(filepath.Join(y.dir, ".agents", "runs", "r", runstate.RunStateName))
	if err != nil {
		t.Fatal(err)
	}
	one := state.Steps[0]
	if !slices.Equal(one.Artifacts, []string{"PLAN.md", "docs/a.md", ".agents/runs/r/artifacts/b.json", "/elsewhere/c.md"}) {
		t.Errorf("artifacts %q", one.Artifacts)
	}
	const warning = `the report names artifacts outside of the repository: "/elsewhere/c.md"`
	if !slices.Equal(one.Logs, []string{"warning: " + warning}) || !strings.Contains(y.logged(), "/elsewhere/c.md") {
		t.Errorf("logs %q; said %s", one.Logs, y.logged())
	}
}
