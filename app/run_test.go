package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// runWorld is an engine on a real disk with real processes, for runs.
type runWorld struct {
	*App
	t   testing.TB
	dir string
}

func newRunWorld(t *testing.T) *runWorld {
	t.Helper()
	e, dir, _ := benchEngine(t, "version: 1\nagents: {}\n")
	return &runWorld{App: e, t: t, dir: dir}
}

// recorded is a log that a test can read.
type recorded struct {
	*slog.TextHandler
	log *logBuffer
}

func newRecorded() recorded {
	buffer := &logBuffer{}
	return recorded{slog.NewTextHandler(buffer, nil), buffer}
}

// logged returns what the supervisor has logged so far.
func (y *runWorld) logged() string { return y.opts.Log.Handler().(recorded).log.String() }

func (y *runWorld) file(name, text string) string {
	y.t.Helper()
	path := filepath.Join(y.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		y.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		y.t.Fatal(err)
	}
	return path
}

// report returns a shell command that runs more and writes a valid report.
func report(more string) string {
	return `printf '{"schema":"run_report@v0","run_id":"%s","step_id":"%s","agent":"a","status":"COMPLETED","started_at":"2026-11-21T10:00:00.000000Z","ended_at":"2026-11-21T10:00:01.000000Z"` + more + `}' "$RUN_ID" "$STEP_ID" > "$REPORT_PATH"`
}

// until waits for a condition on a run.
func (y *runWorld) until(id, what string, is func(view.RunView) bool) view.RunView {
	y.t.Helper()
	return wait.Value(y.t, what, func() (view.RunView, error) { return y.Runs.RunByID(y.t.Context(), id) }, is)
}

func (y *runWorld) start(flags view.RunFlags) view.RunView {
	y.t.Helper()
	view, err := y.Runs.StartRun(y.t.Context(), human, flags)
	if err != nil {
		y.t.Fatal(err)
	}
	return view
}

func over(v view.RunView) bool {
	return !v.FileBehind && v.Status != "running" && v.Status != "waiting"
}

// quoted returns a command as YAML.
func quoted(script string) string {
	text, _ := json.Marshal([]string{"sh", "-c", script})
	return string(text)
}

// TestOneRunOfAName checks that of several orders for one run one is accepted, and that the others
// neither remove its folders nor change its environment.
func TestOneRunOfAName(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	flow := y.file("flow.yaml",
		fmt.Sprintf("name: one\nsteps:\n  - id: only\n    command: %s\n",
			quoted(`echo "$WHO" > who; until [ -e go ]; do sleep 0.01; done; `+report(``))))
	for round := range 5 {
		id := fmt.Sprint("r", round)
		var group sync.WaitGroup
		taken, refused := make(chan string, 8), make(chan error, 8)
		for n := range 8 {
			group.Go(func() {
				who := fmt.Sprint("caller", n)
				if _, err := y.Runs.StartRun(t.Context(), human,
					view.RunFlags{Workflow: flow, RunID: id, Env: []string{"WHO=" + who}}); err != nil {
					refused <- err
					return
				}
				taken <- who
			})
		}
		group.Wait()
		if len(taken) != 1 || len(refused) != 7 {
			t.Fatalf("%d orders were accepted, %d refused", len(taken), len(refused))
		}
		for range 7 {
			var refusal *table.Refusal
			if err := <-refused; !errors.As(err, &refusal) || !strings.Contains(err.Error(), "a run of that name already") {
				t.Errorf("one was refused with %v", err)
			}
		}
		for _, name := range []string{"reports", "logs", "artifacts", "manual_inputs"} {
			if _, err := os.Stat(filepath.Join(y.dir, ".agents", "runs", id, name)); err != nil {
				t.Errorf("a refused order removed a folder: %v", err)
			}
		}
		y.file("go", "")
		if is := y.until(id, "it completes", over); is.Status != "completed" {
			t.Errorf("%s is %s", id, is.Status)
		}
		if who, err := os.ReadFile(filepath.Join(y.dir, "who")); err != nil || strings.TrimSpace(string(who)) != <-taken {
			t.Errorf("it ran with another order's environment: %s, %v", who, err)
		}
		if err := os.Remove(filepath.Join(y.dir, "go")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRunOfCommands runs three steps in sequence with real processes, and checks the state file.
func TestRunOfCommands(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	flow := y.file("flow.yaml", fmt.Sprintf(`name: three
steps:
  - id: plan
    command: %s
  - id: code
    needs: [plan]
    command: %s
  - id: check
    needs: [code]
    command: %s
`, quoted("echo planning; echo plan > PLAN.md; "+report(`,"artifacts":["PLAN.md"]`)), quoted("cat PLAN.md; "+report(``)),
		quoted(report(``))))
	resumeFlags := view.RunFlags{}
	view := y.start(view.RunFlags{Workflow: flow, RunID: "r1"})
	if view.ID != "r1" || view.Workflow != "three" {
		t.Errorf("%+v", view)
	}
	view = y.until("r1", "it completes", over)
	if view.Status != "completed" || view.Counts.Completed != 3 {
		text, _ := json.MarshalIndent(view, "", " ")
		t.Fatalf("%s", text)
	}
	if again, err := y.Runs.ResumeRun(t.Context(), human, "r1", resumeFlags); err != nil || again.Status != "completed" ||
		again.UpdatedAt != view.UpdatedAt {
		t.Errorf("resumed after its end it is %s, %v", again.Status, err)
	}
	log, err := os.ReadFile(filepath.Join(y.dir, ".agents", "runs", "r1", "logs", "r1__plan__attempt1.log"))
	if err != nil || string(log) != "planning\n" {
		t.Errorf("the log: %q, %v", log, err)
	}
	state, err := os.ReadFile(view.StateFile)
	if err != nil || !strings.Contains(string(state), `"run_id": "r1"`) {
		t.Errorf("the file: %s, %v", state, err)
	}
}
