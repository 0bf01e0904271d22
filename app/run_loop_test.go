package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/runs"

	"github.com/fairlead-dev/fairlead/files/runstate"
)

// TestLoopsAndConditions checks loops over given items, the artifacts of another step, a file and
// an empty list, and until a condition holds; and conditions on metrics. All with real processes.
func TestLoopsAndConditions(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	const each = `echo "$STEP_ID $LOOP_ITEM $LOOP_INDEX" >> ran; say COMPLETED ",\"artifacts\":[\"$STEP_ID.$LOOP_INDEX\"]" > "$REPORT_PATH"`
	outside := filepath.Join(t.TempDir(), "list.json")
	if err := os.WriteFile(outside, []byte(`["secret"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(y.dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	y.file("broken.json", `["a",`)
	y.file("object.json", `{"a": 1}`)
	y.file("large.json", `["`+strings.Repeat("x", runs.ItemsFileMax)+`"]`)
	y.file("wrapped.json", `{"items": ["a", "b"]}`)
	y.file("none.json", `[]`)
	list := []oddStep{
		{
			id:   "make",
			does: `echo '["x y", {"n": 1}, 3]' > list.json; say COMPLETED ',"artifacts":["list.json","b.md"],"metrics":{"issues":3,"size":"large"}' > "$REPORT_PATH"`, status: "COMPLETED",
		},
		{id: "given", more: `loop: {items: [one, two]}`, does: each, status: "COMPLETED"},
		{id: "from_step", more: "needs: [make]\n    loop: {items_from_step: make}", does: each, status: "COMPLETED"},
		{id: "wrapped", more: `loop: {items_from_artifact: wrapped.json}`, does: each, status: "COMPLETED"},
		{
			id: "no_artifact", more: "needs: [given2]\n    loop: {items_from_step: given2}", does: each, status: "FAILED",
			says: "given2 has no artifact",
		},
		{id: "given2", does: `say COMPLETED > "$REPORT_PATH"`, status: "COMPLETED"},
		{id: "from_file", more: "needs: [make]\n    loop: {items_from_artifact: list.json}", does: each, status: "COMPLETED"},
		{
			id: "two_of_them", more: "needs: [make]\n    loop: {items_from_artifact: list.json, max_iterations: 2}", does: each,
			status: "COMPLETED",
		},
		{id: "nothing", more: `loop: {items: []}`, does: each, status: "SKIPPED"},
		{id: "none", more: `loop: {items_from_artifact: none.json}`, does: each, status: "SKIPPED"},
		{id: "link", more: `loop: {items_from_artifact: link.json}`, does: each, status: "FAILED", says: "link.json"},
		{id: "broken", more: `loop: {items_from_artifact: broken.json}`, does: each, status: "FAILED", says: "no JSON list"},
		{id: "object", more: `loop: {items_from_artifact: object.json}`, does: each, status: "FAILED", says: "no JSON list"},
		{id: "large", more: `loop: {items_from_artifact: large.json}`, does: each, status: "FAILED", says: "larger than"},
		{id: "missing", more: `loop: {items_from_artifact: nowhere.json}`, does: each, status: "FAILED", says: "nowhere.json"},
		{
			id: "until", more: `loop: {max_iterations: 5, until_condition: 'report.metrics["left"] == "0"'}`,
			does:   `echo "until - $LOOP_INDEX" >> ran; say COMPLETED ",\"metrics\":{\"left\":$((2 - LOOP_INDEX))}" > "$REPORT_PATH"`,
			status: "COMPLETED",
		},
		{
			id: "never", more: `loop: {max_iterations: 2, until_condition: 'index > 7'}`, does: each, status: "FAILED",
			says: "did not hold in 2 rounds",
		},
		{
			id: "when_true", more: "needs: [make]\n    when: 'steps.make.metrics[\"issues\"] == \"3\" && len(steps.make.artifacts) == 2'",
			does: each, status: "COMPLETED",
		},
		{id: "when_false", more: "needs: [make]\n    when: 'steps.make.metrics[\"size\"] == \"small\"'", does: each, status: "SKIPPED"},
		{id: "behind_it", more: "needs: [when_false]", does: each, status: "SKIPPED"},
		{id: "beside_it", more: "needs: [when_false, when_true]", does: each, status: "COMPLETED"},
		{
			id: "when_faulty", more: "needs: [make]\n    when: 'number(steps.make.metrics[\"size\"]) > 1'", does: each, status: "FAILED",
			says: "when",
		},
	}
	y.file("ran", "")
	one := 1
	y.start(view.RunFlags{Workflow: y.oddWorkflow(list), RunID: "loops", MaxAttempts: &one})
	y.compareSteps(y.until("loops", "it is over", over), list)
	text, err := os.ReadFile(filepath.Join(y.dir, "ran"))
	if err != nil {
		t.Fatal(err)
	}
	for step, want := range map[string]string{
		"given": "one 0|two 1", "from_step": `x y 0|{"n":1} 1|3 2`, "wrapped": "a 0|b 1", "no_artifact": "",
		"from_file": `x y 0|{"n":1} 1|3 2`, "two_of_them": `x y 0|{"n":1} 1`, "nothing": "", "none": "",
		"link": "", "broken": "", "object": "", "large": "", "missing": "", "until": "- 0|- 1|- 2", "when_false": "", "behind_it": "",
		"when_faulty": "",
	} {
		var did []string
		for line := range strings.Lines(string(text)) {
			if rest, is := strings.CutPrefix(line, step+" "); is {
				did = append(did, strings.TrimSpace(rest))
			}
		}
		if got := strings.Join(did, "|"); got != want {
			t.Errorf("%s did %q, want %q", step, got, want)
		}
	}
	if strings.Contains(string(text), "secret") {
		t.Error("a link led out of the repository")
	}
}

// TestGatesOpenLater checks gates in a file. They are closed while the file is missing, unreadable
// or says so, and open later. Until then the run waits and names them.
func TestGatesOpenLater(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	list := []oddStep{
		{id: "free", does: `say COMPLETED > "$REPORT_PATH"`, status: "COMPLETED"},
		{id: "ship", more: "needs: [free]\n    gates: [legal, budget]", does: `say COMPLETED > "$REPORT_PATH"`, status: "COMPLETED"},
	}
	y.start(view.RunFlags{Workflow: y.oddWorkflow(list), RunID: "gates", GateStateFile: "gates.json", PollIntervalMS: 5})
	waits := func(what string) func(view.RunView) bool {
		return func(v view.RunView) bool {
			return v.Status == "waiting" && v.Steps[1].Status == "PENDING" && strings.Contains(v.Steps[1].WaitsFor, what)
		}
	}
	y.until("gates", "both are closed", waits("legal"))
	y.file("gates.json", `{"legal": true, "budget": false}`)
	y.until("gates", "one is closed", func(v view.RunView) bool {
		return waits("budget")(v) && !strings.Contains(v.Steps[1].WaitsFor, "legal")
	})
	y.file("gates.json", `{"legal": true, "budget": tr`)
	wait.Until(t, "the torn file is read", func() bool { return strings.Contains(y.logged(), "gate file") })
	y.until("gates", "it waits as before", waits("budget"))
	y.file("gates.json", `{"legal": true, "budget": true}`)
	view := y.until("gates", "it completes", over)
	y.compareSteps(view, list)
}

// TestMisspeltConditions checks that misspelt names are reported as faults with line and column,
// and do not count as false.
func TestMisspeltConditions(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	for name, c := range map[string]struct{ more, says string }{
		"field":   {`when: 'steps.make.statsu == "COMPLETED"'`, "statsu"},
		"step":    {`when: 'steps.maker.status == "COMPLETED"'`, "maker"},
		"root":    {`when: 'step.make.status == "COMPLETED"'`, "step"},
		"report":  {`when: 'report.status == "COMPLETED"'`, "report"},
		"until":   {`loop: {max_iterations: 2, until_condition: 'reprot.status == "x"'}`, "reprot"},
		"no bool": {`when: 'steps.make.attempts'`, "true or false"},
		"syntax":  {`when: 'steps.make.attempts >'`, "when"},
	} {
		t.Run(name, func(t *testing.T) {
			flow := y.file("flow.yaml",
				fmt.Sprintf("name: m\nsteps:\n  - id: make\n    command: [\"true\"]\n  - id: two\n    command: [\"true\"]\n    needs: [make]\n    %s\n", c.more))
			var faults *runstate.FileFaults
			_, err := runs.CheckWorkflow(view.RunFlags{Workflow: flow}, y.opts.Config)
			if !errors.As(err, &faults) || len(faults.List) != 1 || faults.List[0].Line != 8 || faults.List[0].Column < 10 ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if _, err := y.Runs.StartRun(t.Context(), human, view.RunFlags{Workflow: flow}); !errors.As(err, &faults) {
				t.Errorf("the run started: %v", err)
			}
		})
	}
}
