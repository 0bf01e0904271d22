package controller

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/view"
)

// BenchmarkRunSteps measures a run of steps that only report, in sequence or in parallel, beside a
// loop that only starts the same processes and syncs one small record for each of a step's two
// events.
func BenchmarkRunSteps(b *testing.B) {
	for _, c := range []struct {
		name  string
		steps int
		fan   bool
	}{{"chain=100", 100, false}, {"chain=1000", 1000, false}, {"fan=100", 100, true}} {
		b.Run(c.name, func(b *testing.B) { benchRun(b, c.steps, c.fan) })
	}
}

func benchRun(b *testing.B, steps int, fan bool) {
	e, dir, cut := benchEngine(b, "version: 1\nagents: {}\n")
	script := filepath.Join(dir, "step.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"+report("")+"\n"), 0o755); err != nil {
		b.Fatal(err)
	}
	var flow strings.Builder
	flow.WriteString("name: bench\nsteps:\n")
	for n := range steps {
		fmt.Fprintf(&flow, "  - id: s%04d\n    command: [%s]\n", n, script)
		if n > 0 && !fan {
			fmt.Fprintf(&flow, "    needs: [s%04d]\n", n-1)
		}
	}
	path := filepath.Join(dir, "flow.yaml")
	if err := os.WriteFile(path, []byte(flow.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	bareSync := syncer(b)
	out := b.TempDir()
	var runs, bares, spawns, syncs, appends []float64
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		for i := range steps {
			cmd := exec.Command(script)
			cmd.Env = append(os.Environ(), "RUN_ID=bare", "STEP_ID=s", "REPORT_PATH="+filepath.Join(out, fmt.Sprint(i)))
			bareSync()
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
			bareSync()
		}
		bare := time.Since(began).Seconds()
		began = time.Now()
		for i := range steps {
			cmd := exec.Command(script)
			cmd.Env = append(os.Environ(), "RUN_ID=bare", "STEP_ID=s", "REPORT_PATH="+filepath.Join(out, fmt.Sprint(i)))
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
		spawn := time.Since(began).Seconds()
		sync := bareSync().Seconds()

		before := cut.Appends()
		id := fmt.Sprintf("bench%d", n)
		began = time.Now()
		if _, err := e.StartRun(b.Context(), human, view.RunFlags{Workflow: path, RunID: id}); err != nil {
			b.Fatal(err)
		}
		for {
			view, err := e.Runs(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			if view[0].ID == id && view[0].Status != "running" {
				if view[0].Status != "completed" {
					b.Fatalf("%+v", view[0])
				}
				break
			}
			wait.Pause(2 * time.Millisecond)
		}
		run := time.Since(began).Seconds()
		runs, bares, spawns, syncs = append(runs, run), append(bares, bare), append(spawns, spawn), append(syncs, sync)
		appends = append(appends, float64(cut.Appends()-before)/float64(steps))
	}
	per := 1e3 / float64(steps)
	b.ReportMetric(median(runs)*per, "ms/step")
	b.ReportMetric(median(bares)*per, "ms/bare-step")
	b.ReportMetric(median(spawns)*per, "ms/spawn")
	b.ReportMetric(median(runs)/median(bares), "x-bare")
	b.ReportMetric((median(runs)-median(spawns))/float64(steps)/median(syncs), "syncs-over-spawn")
	b.ReportMetric(median(appends), "appends/step")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRunWrapper measures a run of twenty steps in sequence with a trivial Python wrapper. The
// tool of the seed takes 20.2 s for it at its default poll interval of a second.
func BenchmarkRunWrapper(b *testing.B) {
	if _, err := exec.LookPath("python3"); err != nil {
		b.Skip("needs python3")
	}
	e, dir, _ := benchEngine(b, "version: 1\nagents: {}\n")
	wrapper := filepath.Join(dir, "wrapper.py")
	text := `import argparse, json
p = argparse.ArgumentParser()
for name in ("run-id", "step-id", "agent", "prompt", "repo", "report"):
    p.add_argument("--" + name)
a = p.parse_args()
json.dump({"schema": "run_report@v0", "run_id": a.run_id, "step_id": a.step_id, "agent": a.agent, "status": "COMPLETED",
           "started_at": "2026-11-21T10:00:00.000000Z", "ended_at": "2026-11-21T10:00:01.000000Z"}, open(a.report, "w"))
`
	var flow strings.Builder
	flow.WriteString("name: wrapped\nsteps:\n")
	for n := range 20 {
		fmt.Fprintf(&flow, "  - id: s%02d\n    agent: nobody\n    prompt: p.md\n", n)
		if n > 0 {
			fmt.Fprintf(&flow, "    needs: [s%02d]\n", n-1)
		}
	}
	for name, text := range map[string]string{"wrapper.py": text, "flow.yaml": flow.String(), "p.md": "do it\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	var runs, bares []float64
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		for i := range 20 {
			out, err := exec.Command("python3", wrapper, "--run-id", "r", "--step-id", "s", "--agent", "a", "--prompt", "p", "--repo", dir, "--report", filepath.Join(dir, fmt.Sprint("bare", i))).CombinedOutput()
			if err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
		bares = append(bares, time.Since(began).Seconds())
		began = time.Now()
		id := fmt.Sprintf("wrap%d", n)
		if _, err := e.StartRun(b.Context(), human, view.RunFlags{Workflow: "flow.yaml", RunID: id, Wrapper: "wrapper.py"}); err != nil {
			b.Fatal(err)
		}
		awaitEnd(b, e, id)
		runs = append(runs, time.Since(began).Seconds())
	}
	b.ReportMetric(median(runs), "s/run")
	b.ReportMetric(median(bares), "s/bare-wrappers")
	b.ReportMetric(20.2/median(runs), "x-seed's-tool")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRunResume measures the time from the order to resume a run of 10,000 steps, all but the
// last of which are done, until the last one is done, beside a bare read and decode of its file.
func BenchmarkRunResume(b *testing.B) {
	const steps = 10_000
	e, dir, _ := benchEngine(b, "version: 1\nagents: {}\n")
	var flow strings.Builder
	flow.WriteString("name: big\nsteps:\n")
	state := map[string]any{}
	for n := range steps {
		id := fmt.Sprintf("s%05d", n)
		command := "[sh, " + filepath.Join(dir, "step.sh") + "]"
		fmt.Fprintf(&flow, "  - {id: %s, command: %s", id, command)
		if n > 0 {
			fmt.Fprintf(&flow, ", needs: [s%05d]", n-1)
		}
		flow.WriteString("}\n")
		status := "COMPLETED"
		if n == steps-1 {
			status = "FAILED"
		}
		state[id] = map[string]any{
			"status": status, "attempts": 1, "iteration_count": 0, "report_path": nil, "started_at": "2026-11-21T10:00:00.000000Z", "ended_at": "2026-11-21T10:00:01.000000Z",
			"last_error": nil, "artifacts": []string{}, "metrics": map[string]string{}, "logs": []string{}, "manual_input_path": nil, "blocked_by_loop": nil,
		}
	}
	for name, text := range map[string]string{"step.sh": report("") + "\n", "flow.yaml": flow.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	var imports, resumes, bares []float64
	for n := 0; b.Loop(); n++ {
		id := fmt.Sprintf("big%d", n)
		folder := filepath.Join(dir, ".agents", "runs", id)
		text, err := json.Marshal(map[string]any{
			"run_id": id, "workflow_name": "big", "repo_dir": dir, "reports_dir": filepath.Join(folder, "reports"), "manual_inputs_dir": filepath.Join(folder, "manual_inputs"),
			"created_at": "2026-11-21T10:00:00.000000Z", "updated_at": "2026-11-21T10:00:01.000000Z", "steps": state,
		})
		if err == nil {
			err = os.MkdirAll(folder, 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, "run_state.json"), text, 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		read, err := os.ReadFile(filepath.Join(folder, "run_state.json"))
		var into map[string]any
		if err == nil {
			err = json.Unmarshal(read, &into)
		}
		if err != nil {
			b.Fatal(err)
		}
		bares = append(bares, time.Since(began).Seconds())
		began = time.Now()
		if _, err := e.ResumeRun(b.Context(), human, id, view.RunFlags{Workflow: "flow.yaml"}); err != nil {
			b.Fatal(err)
		}
		awaitEnd(b, e, id)
		imports = append(imports, time.Since(began).Seconds())
		began = time.Now()
		if _, err := e.ResumeRun(b.Context(), human, id, view.RunFlags{StartAtStep: fmt.Sprintf("s%05d", steps-1)}); err != nil {
			b.Fatal(err)
		}
		awaitEnd(b, e, id)
		resumes = append(resumes, time.Since(began).Seconds())
	}
	b.ReportMetric(median(imports)*1e3, "ms/import-and-resume")
	b.ReportMetric(median(resumes)*1e3, "ms/resume")
	b.ReportMetric(median(bares)*1e3, "ms/bare-decode")
	b.ReportMetric(median(resumes)/median(bares), "resume/bare-decode")
	b.ReportMetric(0, "ns/op")
}

// awaitEnd waits until a run has completed.
func awaitEnd(b *testing.B, e *Supervisor, id string) {
	b.Helper()
	for {
		views, err := e.Runs(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for i := range views {
			if v := &views[i]; v.ID == id && v.Status != "running" {
				if v.Status != "completed" {
					b.Fatalf("%+v", v)
				}
				return
			}
		}
		wait.Pause(time.Millisecond)
	}
}
