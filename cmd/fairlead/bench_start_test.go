package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/read/view"
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

// restWindow is how long a daemon is left alone after a start: what the start itself leaves behind is collected meanwhile.
const restWindow = 10 * time.Second

const restful = `sessions:
  - steps:
      - sleep: 1h
`

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

// BenchmarkAll measures `fairlead start --all` with 200 agents, to the last process; `down --now`; and the memory that a shim
// shares with no other process.
func BenchmarkAll(b *testing.B) {
	needProc(b)
	const agents = 200
	fairlead, _ := built(b)
	var yaml strings.Builder
	yaml.WriteString("version: 1\nagents:\n")
	for n := range agents {
		fmt.Fprintf(&yaml, "  a%d: {driver: exec, command: [sleep, 1h], workspace: a%d}\n", n, n)
	}
	var started, ended []time.Duration
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
		wait.Pause(restWindow)
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
		started = append(started, round())
	}
	b.ReportMetric(millis(middle(started)), "ms/start-all")
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(millis(middle(ended)), "ms/down-now")
	b.ReportMetric(middle(shims), "MB-of-a-shim")
}
