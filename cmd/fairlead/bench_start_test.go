package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/shim"
	"github.com/fairlead-dev/fairlead/view"
)

// timed runs a program to its end.
func timed(b *testing.B, words ...string) time.Duration {
	b.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	began := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// BenchmarkVersion measures `fairlead version` beside a Go program that does nothing.
func BenchmarkVersion(b *testing.B) {
	fairlead, empty := built(b)
	var p pairs
	for b.Loop() {
		p.measure(
			func() time.Duration { return timed(b, fairlead, "version") },
			func() time.Duration { return timed(b, empty) })
	}
	p.report(b, "version", "empty-program")
}

// three idle agents, like the repository of a new user.
const threeAtRest = `version: 1
agents:
  ada: {driver: exec, command: ["true"], workspace: ada}
  bob: {driver: exec, command: ["true"], workspace: bob}
  eve: {driver: exec, command: ["true"], workspace: eve}
`

// BenchmarkUp measures from the start of the daemon's process to its line that it is ready,
// in a repository that it knows and in a new one, and its memory then.
func BenchmarkUp(b *testing.B) {
	fairlead, empty := built(b)
	known := newBenchRig(b, fairlead, map[string]string{"fairlead.yaml": threeAtRest})
	known.up()
	known.down()
	var again, first pairs
	var resident []float64
	for b.Loop() {
		again.measure(
			func() time.Duration {
				took := known.up()
				if _, err := os.Stat("/proc/self/status"); err == nil {
					bytes, _ := memoryOf(b, known.pid())
					resident = append(resident, bytes/1e6)
				}
				known.down()
				return took
			},
			func() time.Duration { return timed(b, empty) })
		first.measure(
			func() time.Duration {
				h := newBenchRig(b, fairlead, map[string]string{"fairlead.yaml": threeAtRest})
				took := h.up()
				h.down()
				return took
			},
			func() time.Duration { return timed(b, empty) })
	}
	again.report(b, "ready", "empty-program")
	b.ReportMetric(millis(middle(first.ours)), "ms/ready-in-a-new-repository")
	if len(resident) > 0 {
		b.ReportMetric(middle(resident), "MB-resident")
	}
}

const (
	restWindow = 10 * time.Second
	manyAtRest = 1000
	manyAtWork = 100
)

// BenchmarkRest measures what 1,000 agents at rest cost a daemon, beside a daemon with one.
// It takes two minutes: what is asked is how little is done in ten seconds.
func BenchmarkRest(b *testing.B) {
	needProc(b)
	var yaml strings.Builder
	yaml.WriteString("version: 1\nagents:\n")
	for n := range manyAtRest {
		fmt.Fprintf(&yaml, "  a%d: {driver: exec, command: [\"true\"], workspace: a%d}\n", n, n)
	}
	besideBase(b, yaml.String(), func(*benchRig) {})
}

const restful = `sessions:
  - steps:
      - sleep: 1h
`

// BenchmarkWork measures what 100 agents that run and say nothing cost a daemon, beside a
// daemon with one at rest. Their shims and they themselves are not counted.
func BenchmarkWork(b *testing.B) {
	needProc(b)
	var yaml strings.Builder
	yaml.WriteString("version: 1\nagents:\n")
	for n := range manyAtWork {
		fmt.Fprintf(&yaml, "  a%d: {driver: script, script: sleep.script.yaml, workspace: a%d}\n", n, n)
	}
	besideBase(b, yaml.String(), func(h *benchRig) {
		client, err := apiclient.Dial(h.dir)
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close()
		for n := range manyAtWork {
			if _, err := client.Command(b.Context(), api.Start, fmt.Sprintf("a%d", n), ""); err != nil {
				b.Fatal(err)
			}
		}
		allRun(b, client, manyAtWork)
	})
}

// allRun waits until n agents have a process each.
func allRun(b *testing.B, client *apiclient.Client, n int) {
	b.Helper()
	wait.Until(b, "all agents run", func() bool {
		shown, err := client.Agents(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		running := 0
		for _, agent := range shown.Agents {
			if agent.Badge == view.BadgeRunning && agent.Session != nil && agent.Session.PID != 0 {
				running++
			}
		}
		return running == n
	})
}

// BenchmarkAll measures `fairlead start --all` with 200 agents, to the last process, beside 200 starts of a program
// that does nothing, one after the other; `down --now`; and the memory that a shim shares with no other process.
func BenchmarkAll(b *testing.B) {
	needProc(b)
	const agents = 200
	fairlead, empty := built(b)
	var yaml strings.Builder
	yaml.WriteString("version: 1\nagents:\n")
	for n := range agents {
		fmt.Fprintf(&yaml, "  a%d: {driver: exec, command: [sleep, 1h], workspace: a%d}\n", n, n)
	}
	var started pairs
	var ended []time.Duration
	var shims []float64
	round := func() time.Duration {
		h := newBenchRig(b, fairlead, map[string]string{"fairlead.yaml": yaml.String()})
		h.up()
		client, err := apiclient.Dial(h.dir)
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close()
		began := time.Now()
		timed(b, fairlead, "start", "--all", "--dir", h.dir)
		allRun(b, client, agents)
		took := time.Since(began)
		wait.Pause(restWindow) // what the start itself leaves behind is collected meanwhile
		shown, err := client.Agents(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for _, agent := range shown.Agents {
			_, parent, ok := shim.Lineage(agent.Session.PID)
			if !ok {
				b.Fatalf("process %d of %s has ended", agent.Session.PID, agent.Name)
			}
			_, own := memoryOf(b, parent)
			shims = append(shims, own/1e6)
		}
		began = time.Now()
		h.down()
		ended = append(ended, time.Since(began))
		return took
	}
	for b.Loop() {
		started.measure(round, func() time.Duration {
			began := time.Now()
			for range agents {
				timed(b, empty)
			}
			return time.Since(began)
		})
	}
	started.report(b, "start-all", "bare-starts")
	b.ReportMetric(millis(middle(ended)), "ms/down-now")
	b.ReportMetric(middle(shims), "MB-of-a-shim")
}

// besideBase runs a daemon with many agents and one with a single agent side by side, and
// looks at both in each window.
func besideBase(b *testing.B, yaml string, prepare func(*benchRig)) {
	fairlead, _ := built(b)
	base := newBenchRig(b, fairlead, map[string]string{"fairlead.yaml": "version: 1\nagents:\n  a: {driver: exec, command: [\"true\"], workspace: a}\n"})
	many := newBenchRig(b, fairlead, map[string]string{"fairlead.yaml": yaml, "sleep.script.yaml": restful})
	base.up()
	took := many.up()
	prepare(many)
	wait.Pause(restWindow) // what the start itself leaves behind is collected meanwhile
	var over, own, bases []float64
	var cpuMany, cpuBase time.Duration
	windows := 0
	for b.Loop() {
		for range repeats {
			beganMany, beganBase := processorTime(b, many.pid()), processorTime(b, base.pid())
			wait.Pause(restWindow)
			cpuMany += processorTime(b, many.pid()) - beganMany
			cpuBase += processorTime(b, base.pid()) - beganBase
			manyAll, manyOwn := memoryOf(b, many.pid())
			baseAll, baseOwn := memoryOf(b, base.pid())
			over, own, bases = append(over, (manyAll-baseAll)/1e6), append(own, (manyOwn-baseOwn)/1e6), append(bases, baseAll/1e6)
			windows++
		}
	}
	ofCore := func(d time.Duration) float64 {
		return 100 * d.Seconds() / (time.Duration(windows) * restWindow).Seconds()
	}
	b.ReportMetric(millis(took), "ms/ready")
	b.ReportMetric(middle(over), "MB-over-base")
	b.ReportMetric(middle(own), "MB-own-over-base")
	b.ReportMetric(middle(bases), "MB-base")
	b.ReportMetric(ofCore(cpuMany), "%-of-a-core")
	b.ReportMetric(ofCore(cpuBase), "base:%-of-a-core")
	b.ReportMetric(0, "ns/op")
}
