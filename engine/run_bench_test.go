package engine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkRunSteps measures a run of steps that do nothing but report, one after the other or
// side by side, beside a loop that only starts the same processes and syncs one small record
// for each of a step's two events.
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
	e, dir, cut := harbour(b, "version: 1\nagents: {}\n")
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
		if _, err := e.StartRun(b.Context(), human, RunFlags{Workflow: path, RunID: id}); err != nil {
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
			<-time.After(2 * time.Millisecond)
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
