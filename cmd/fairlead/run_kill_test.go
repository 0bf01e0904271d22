package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/read/view"
)

const killSteps = 20

// longFlow is a workflow of twenty steps in two branches. Each says that it ran, works a
// little, and leaves something behind.
func longFlow() string {
	const step = `echo $STEP_ID >> ran; sleep 0.0$((RANDOM_SEED % 5 + 1)); echo made by $STEP_ID > $STEP_ID.out
printf '{"schema":"v0","run_id":"%s","step_id":"%s","agent":"a","status":"COMPLETED","started_at":"2026-11-21T10:00:00Z","ended_at":"2026-11-21T10:00:01Z","artifacts":["%s.out"]}' $RUN_ID $STEP_ID $STEP_ID > $REPORT_PATH.new
mv $REPORT_PATH.new $REPORT_PATH
`
	var flow strings.Builder
	flow.WriteString("name: long\nsteps:\n")
	for n := range killSteps {
		fmt.Fprintf(&flow, "  - id: s%02d\n    command: [sh, -c, %q]\n", n, strings.ReplaceAll(step, "RANDOM_SEED", fmt.Sprint(n)))
		if n >= 2 {
			fmt.Fprintf(&flow, "    needs: [s%02d]\n", n-2)
		}
	}
	return flow.String()
}

// `fairlead run` without a daemon is killed at random moments, and `fairlead run resume` after it,
// again and again: each step is done once, and what is left is what a run undisturbed leaves.
func TestRunKilledAtRandom(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "flow.yaml"), []byte(longFlow()), 0o600); err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	state := filepath.Join(dir, ".agents", "runs", "r", runstate.RunStateName)
	const kills = 6 // more than this many the run does not outlast; then it is let be
	killed, begun, done := 0, false, false
	for tries := 0; !done; tries++ {
		if tries > 3*kills {
			t.Fatal("it never completes")
		}
		words := []string{"run", "resume", "r", "--dir", dir}
		if _, err := os.Lstat(state); err != nil && !begun {
			words = []string{"run", "--run-id", "r", "--workflow", filepath.Join(dir, "flow.yaml"), "--dir", dir, "--side-by-side", "2"}
		}
		life := 50*time.Millisecond + time.Duration(rnd.IntN(400))*time.Millisecond
		if killed == kills {
			life = rigWait
		}
		code, said := runFor(t, life, words...)
		switch {
		case code == cli.ExitDone:
			done = true
		case code == -1:
			killed++
		case code == cli.ExitRefused && strings.Contains(said, "`fairlead run resume r` goes on"):
			begun = true // it was killed after it was in the journal, and before its file was there
		case code == cli.ExitRefused && strings.Contains(said, "while completed"): // it was killed when all was done
			done = true
		default:
			t.Fatalf("%v: exit code %d: %s", words, code, said)
		}
		if text, err := os.ReadFile(state); err == nil {
			if _, err := runstate.ParseRunState(text); err != nil {
				t.Fatalf("after kill %d: %v", killed, err)
			}
		}
	}
	t.Logf("killed %d times", killed)
	doneOnce(t, dir)
	if strays, err := shim.Strays(dir); err != nil || len(strays) > 0 {
		t.Errorf("processes were left behind: %+v, %v", strays, err)
	}
}

// runFor runs a verb and kills it after a while; -1 says that it did.
func runFor(t *testing.T, life time.Duration, words ...string) (code int, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), life)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, words...) // SIGKILL at the end of ctx
	cmd.WaitDelay = time.Second                        // shims keep nothing of it open, and this says so if they do
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// doneOnce checks what a run of longFlow leaves.
func doneOnce(t *testing.T, dir string) {
	t.Helper()
	ran, err := os.ReadFile(filepath.Join(dir, "ran"))
	if err != nil {
		t.Fatal(err)
	}
	state, err := runstate.ReadRunState(filepath.Join(dir, ".agents", "runs", "r", runstate.RunStateName))
	if err != nil {
		t.Fatal(err)
	}
	for n, s := range state.Steps {
		name := fmt.Sprintf("s%02d", n)
		if did := strings.Count(string(ran), name+"\n"); did != 1 {
			t.Errorf("step %s was done %d times", name, did)
		}
		if out, err := os.ReadFile(filepath.Join(dir, name+".out")); err != nil || string(out) != "made by "+name+"\n" {
			t.Errorf("%s left %q, %v", name, out, err)
		}
		if s.ID != name || s.Status != runstate.StepCompleted || s.Attempts != 1 || len(s.Artifacts) != 1 {
			t.Errorf("the file says %+v", s)
		}
	}
	if len(state.Steps) != killSteps {
		t.Errorf("%d steps", len(state.Steps))
	}
}

// The daemon that carries a run out is killed at random moments; the next one continues the
// run without an order.
func TestKilledDaemonOfARun(t *testing.T) {
	underRace(t)
	s := newRig(t, map[string]string{"fairlead.yaml": "version: 1\nagents: {}\n", "flow.yaml": longFlow()})
	two := 2
	if _, err := s.client().Runs.Start(t.Context(),
		view.RunFlags{Workflow: filepath.Join(s.dir, "flow.yaml"), RunID: "r", SideBySide: &two}); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		wait.Pause(time.Duration(rand.IntN(150)) * time.Millisecond) // the random moment
		s.kill()
		s.up()
	}
	s.runUntil("r", "it completes", func(v view.RunView) bool { return v.Status == "completed" && !v.FileBehind })
	doneOnce(t, s.dir)
}

// runUntil waits for a condition on a run.
func (s *rig) runUntil(id, what string, ok func(view.RunView) bool) view.RunView {
	s.t.Helper()
	client := s.client()
	return seenUntil(s.t, what, func() (view.RunView, error) { return client.Runs.Show(context.Background(), id) }, ok,
		func() string { return "" })
}

// seenUntil looks at something of the daemon until it is as it should be. Where that does not
// come, more says what else is of use.
func seenUntil[V any](t testing.TB, what string, look func() (V, error), ok func(V) bool, more func() string) V {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log(more())
		}
	}()
	return wait.Value(t, what, look, ok)
}

// DESIGN: secrets never reach disk, logs or errors. Values of --env reach the steps, and
// nothing else: not the journal, not what is kept of sessions, no log, no answer.
func TestEnvIsKeptNowhere(t *testing.T) {
	const secret = "hunter2-0123456789-never-written"
	s := newRig(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents: {}\n",
		"flow.yaml": `name: secret
steps:
  - {id: fails, command: [sh, -c, 'test -n "$TOKEN" && touch got.it; exit 3']}
  - {id: hangs, command: [sleep, "1000"], timeout: 1h}
  - {id: cannot, command: [./nowhere/at/all]}
`,
	})
	t.Setenv("TOKEN", secret)
	one := 1
	shown, err := s.client().Runs.Start(t.Context(),
		view.RunFlags{
			Workflow: "flow.yaml", RunID: "r", MaxAttempts: &one,
			Env: []string{"TOKEN=" + secret, "LONG=" + secret + strings.Repeat("x", 100<<10)},
		})
	if err != nil {
		t.Fatal(err)
	}
	s.runUntil("r", "two have failed, and one works", func(v view.RunView) bool {
		return v.Counts.Failed == 2 && v.Counts.Running == 1 && v.Steps[1].Session != "" && !v.FileBehind
	})
	if _, err := os.Lstat(filepath.Join(s.dir, "got.it")); err != nil {
		t.Errorf("the step was not given its variable: %v", err)
	}
	for _, words := range [][]string{
		{"run", "show", "r", "--json"},
		{"log", "--json"},
		{"ps", "--json"},
		{"run", "--workflow", filepath.Join(s.dir, "flow.yaml"), "--run-id", "r", "--env", "TOKEN"},
	} {
		if out, _ := s.fairlead(words...); strings.Contains(out, secret) {
			t.Errorf("fairlead %v tells it: %s", words, out)
		}
	}
	s.nowhere(secret)
	s.kill()
	if strings.Contains(s.heard.String(), secret) {
		t.Errorf("the log has it: %s", s.heard)
	}
	s.up()
	s.runUntil("r", "the step is found", func(v view.RunView) bool { return v.Steps[1].Session != "" })
	s.nowhere(secret)
	if _, err := s.client().Runs.Cancel(t.Context(), shown.ID, "", ""); err != nil {
		t.Fatal(err)
	}
}

// nowhere fails where a text is in any file of the repository.
func (s *rig) nowhere(text string) {
	s.t.Helper()
	looked := 0
	if err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // it went away meanwhile
		}
		content, err := os.ReadFile(path)
		if err == nil && bytes.Contains(content, []byte(text)) {
			s.t.Errorf("%s has it", path)
		}
		looked++
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
	if looked < 5 {
		s.t.Errorf("%d files: the test looks in the wrong place", looked)
	}
}
