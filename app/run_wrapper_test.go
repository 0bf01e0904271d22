package app

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/files/runstate"

	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

// tellAll is a wrapper that records how it was called, and reports.
const tellAll = `import json, os, sys
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
names = ("RUN_ID", "STEP_ID", "AGENT_ID", "REPO_DIR", "PROMPT_PATH", "REPORT_PATH", "MANUAL_RESULT_PATH", "STEP_ATTEMPT", "ARTIFACTS_DIR", "STEP_MODEL")
with open("told." + words["--step-id"] + "." + os.environ.get("LOOP_NTH", "") + "." + os.environ["STEP_ATTEMPT"], "w") as f:
    f.write("in %s\n" % os.getcwd())
    for word in sys.argv[1:]:
        f.write("  %s\n" % word)
    for name in sorted(os.environ):
        if name in names or name.startswith(("DEP_", "LOOP_", "GIVEN_")):
            f.write("  %s=%s\n" % (name, os.environ[name]))
if words["--step-id"] == "plan" and os.environ["STEP_ATTEMPT"] == "1":
    sys.exit("the first time I stumble")
made = {"plan": ["PLAN.md", "docs/a b.md", "/tmp/elsewhere.md"]}.get(words["--step-id"], [])
with open(words["--report"], "w") as f:
    json.dump({"schema": "run_report@v0", "run_id": words["--run-id"], "step_id": words["--step-id"], "agent": words["--agent"], "status": "COMPLETED",
        "started_at": "2026-11-21T10:00:00Z", "ended_at": "2026-11-21T10:00:01Z", "artifacts": made, "metrics": {}, "logs": []}, f)
`

// SPEC Workflow, the wrappers' contract: a wrapper that is a .py file without the executable bit
// receives everything that the tool of the seed passes, unchanged.
func TestWrapperContract(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	y := newRunWorld(t)
	y.settled()
	wrapper := y.file("tools/wrap.py", tellAll)
	if err := os.Chmod(wrapper, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".agents/prompts/plan.md": "plan it", "code.md": "code it", "flows/ask.md": "ask them"} {
		y.file(name, text)
	}
	flow := y.file("flows/flow.yaml", `name: contract
steps:
  - {id: plan, agent: planner, prompt: plan.md}
  - id: code-it.v2
    agent: coder
    prompt: code.md
    model: large
    needs: [plan]
    loop: {items: ["one word", {"a": [1, 2]}], item_var: file, index_var: nth}
  - {id: ask, agent: lead, prompt: ask.md, needs: [plan], human_in_the_loop: true, ask: before}
`)
	one := 1
	y.start(view.RunFlags{
		Workflow: flow, RunID: "c1", Wrapper: wrapper, WrapperArgs: []string{"--more", "with space", "--empty", ""}, SideBySide: &one,
		Env: []string{"GIVEN_A=b=c", "GIVEN_EMPTY=", "RUN_ID=mine"}, PauseForHumans: true,
	})
	y.until("c1", "it asks", func(v view.RunView) bool { return v.Status == "waiting" && v.Steps[2].Status == "WAITING_ON_HUMAN" })
	if _, err := y.Runs.Answer(t.Context(), human, "c1", "ask", view.StepAnswer{}); err != nil {
		t.Fatal(err)
	}
	view := y.until("c1", "it completes", over)
	if view.Status != "completed" {
		t.Errorf("%+v", view)
	}
	golden.Check(t, filepath.Join("testdata", "wrapper.golden"), y.recordedCalls("told.*"))
}

// --command-template: a whole command, which is not run by a shell unless it names one.
func TestCommandTemplate(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	y.settled()
	y.file("tell.sh",
		saying+`{ echo "in $(pwd)"; for w in "$@"; do echo "  <$w>"; done; } > "told.$STEP_ID"; say COMPLETED > "$REPORT_PATH"`)
	y.file("a b.md", "do it; touch /tmp/never")
	flow := y.file("flow.yaml",
		"name: template\nsteps:\n  - {id: one, agent: coder, prompt: a b.md}\n  - {id: two, agent: coder, prompt: a b.md, needs: [one]}\n")
	y.start(view.RunFlags{
		Workflow: flow, RunID: "t1",
		CommandTemplate: `sh tell.sh --run={run_id} {step_id} {agent} {prompt} {repo} {report} {attempt} "{manual_input}" 'two words' {{x}} $HOME`,
	})
	if view := y.until("t1", "it completes", over); view.Status != "completed" {
		t.Errorf("%+v", view)
	}
	golden.Check(t, filepath.Join("testdata", "template.golden"), y.recordedCalls("told.*"))
}

// settled resolves the folder as the kernel does, because steps receive that path.
func (y *runWorld) settled() {
	y.t.Helper()
	dir, err := filepath.EvalSymlinks(y.dir)
	if err != nil {
		y.t.Fatal(err)
	}
	y.dir = dir
}

// recordedCalls returns what the wrappers recorded, without the repository's own path.
func (y *runWorld) recordedCalls(pattern string) string {
	y.t.Helper()
	paths, err := filepath.Glob(filepath.Join(y.dir, pattern)) // in order
	if err != nil {
		y.t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			y.t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s %s", filepath.Base(path), text)
	}
	return strings.ReplaceAll(all.String(), y.dir, "REPO")
}

// SPEC Workflow: prompts resolve within the repository. Only an absolute path leads out of it. A
// link does not, also if it was created after the workflow was checked.
func TestPromptsOutside(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	y.settled()
	outside := filepath.Join(t.TempDir(), "secret.md")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	y.file("inside.md", "work")
	if err := os.Symlink(outside, filepath.Join(y.dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(y.dir, "way")); err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(y.dir, outside)
	if err != nil {
		t.Fatal(err)
	}
	wrapper := y.file("wrap.sh", "#!/bin/sh\n"+saying+`cat "$PROMPT_PATH" > "seen.$STEP_ID"; say COMPLETED > "$REPORT_PATH"`)
	flags := func(id, prompt string) view.RunFlags {
		return view.RunFlags{
			Workflow: y.file("flow.yaml", fmt.Sprintf("name: p\nsteps:\n  - {id: one, agent: a, prompt: %q}\n", prompt)),
			RunID:    id, Wrapper: wrapper,
		}
	}
	for _, prompt := range []string{rel, "link.md", "way/secret.md", "way/../way/secret.md", "nowhere.md", "."} {
		var faults *runstate.FileFaults
		if _, err := y.Runs.StartRun(t.Context(), human, flags("no", prompt)); !errors.As(err, &faults) || faults.List[0].Line != 3 {
			t.Errorf("%s: %v", prompt, err)
		}
	}
	y.start(flags("yes", outside))
	if view := y.until("yes", "it completes", over); view.Status != "completed" {
		t.Errorf("an absolute path: %+v", view)
	}
	two := flags("swap", "inside.md")
	two.Wrapper = y.file("swap.sh", "#!/bin/sh\n[ $STEP_ID = one ] || ln -sf "+outside+" inside.md\n. ./wrap.sh")
	two.Workflow = y.file("flow.yaml", `name: p
steps:
  - {id: lay, agent: a, prompt: inside.md}
  - {id: one, agent: a, prompt: inside.md, needs: [lay]}
`)
	once := 1
	two.MaxAttempts = &once
	if err := os.Remove(filepath.Join(y.dir, "seen.one")); err != nil {
		t.Fatal(err)
	}
	y.start(two)
	view := y.until("swap", "it is over", over)
	if s := view.Steps[1]; view.Steps[0].Status != "COMPLETED" || s.Status != "FAILED" || !strings.Contains(s.LastError, "outside") {
		t.Errorf("a link that was created later: %+v", view.Steps)
	}
	if _, err := os.Stat(filepath.Join(y.dir, "seen.one")); err == nil {
		t.Error("the step received a file outside of the repository")
	}
}
