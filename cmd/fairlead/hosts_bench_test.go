package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/internal/test/ports"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

const hostedYAML = `version: 1
agents:
  here: {description: Works here, driver: exec, command: ["true"], workspace: w1}
  there: {description: Works there, driver: exec, command: ["true"], workspace: w2, host: {labels: [gpu]}}
`

// hostedRig is a leader and its hosts, each a process, on loopback. All bytes between them are counted.
type hostedRig struct {
	*benchRig
	hosts []*benchRig
	bytes atomic.Int64
}

func (h *hostedRig) fairlead(dir string, words ...string) string {
	h.b.Helper()
	cmd := exec.Command(h.exe, append(words, "--dir", dir)...)
	cmd.Dir = dir
	said, err := cmd.Output()
	if err != nil {
		h.b.Fatalf("fairlead %v: %v: %s", words, err, said)
	}
	return string(said)
}

func newHostedRig(b *testing.B, hosts int) *hostedRig {
	b.Helper()
	exe, _ := built(b)
	h := &hostedRig{benchRig: newBenchRig(b, exe, map[string]string{"fairlead.yaml": hostedYAML, ".gitignore": ".agents/\n.fairlead/\nagent_state.json\n*.lock\n"})}
	var mixed strings.Builder
	mixed.WriteString("name: mixed\nsteps:\n")
	for n := range 20 {
		needs, agent := "", "here"
		if n > 0 {
			needs = fmt.Sprintf(", needs: [s%d]", n-1)
		}
		if n%2 == 1 {
			agent = "there"
		}
		fmt.Fprintf(&mixed, "  - {id: s%d, agent: %s, prompt: go, report_optional: true%s}\n", n, agent, needs)
	}
	for name, text := range map[string]string{"mixed.yaml": mixed.String(), "w1/x": "x", "w2/x": "x", ".agents/prompts/go": "go\n"} {
		path := filepath.Join(h.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for n := range 200 {
		if err := os.WriteFile(filepath.Join(h.dir, fmt.Sprintf("f%d", n)), []byte(strings.Repeat(fmt.Sprintln(n), 300)), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for _, words := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "x"}} {
		if said, err := exec.Command("git", append([]string{"-C", h.dir}, words...)...).CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v: %s", words, err, said)
		}
	}
	at := ports.Address(1)
	h.fairlead(h.dir, "cluster", "init", "--name", "a", "--team", "web", "--listen", at, "--capacity", "3")
	h.up()
	through := h.counts(at)
	for n := range hosts {
		var invited api.Invitation
		if err := json.Unmarshal([]byte(h.fairlead(h.dir, "host", "invite", "--label", "gpu", "--json")), &invited); err != nil {
			b.Fatal(err)
		}
		one := newBenchRig(b, exe, nil)
		h.fairlead(one.dir, "host", "join", invited.Token, "--name", "b"+strconv.Itoa(n))
		file := filepath.Join(one.dir, ".fairlead", "cluster", "host.json")
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte(strings.ReplaceAll(string(text), at, through)), 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
		one.upHost()
		h.hosts = append(h.hosts, one)
	}
	wait.Until(b, "all hosts have joined", func() bool {
		return strings.Count(h.fairlead(h.dir, "hosts"), " joined ") == 1+hosts
	})
	return h
}

// upHost starts the daemon of a host, which has no page.
func (h *benchRig) upHost() {
	h.b.Helper()
	cmd := exec.Command(h.exe, "up", "--dir", h.dir)
	cmd.Stderr = &h.said
	if err := cmd.Start(); err != nil {
		h.b.Fatal(err)
	}
	h.daemon = cmd
}

// counts passes connections on, and counts their bytes.
func (h *hostedRig) counts(to string) (at string) {
	h.b.Helper()
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.b.Fatal(err)
	}
	h.b.Cleanup(func() { door.Close() })
	pass := func(to, from net.Conn) {
		defer to.Close()
		defer from.Close()
		_, _ = io.Copy(io.MultiWriter(to, h), from)
	}
	go func() {
		for {
			one, err := door.Accept()
			if err != nil {
				return
			}
			other, err := net.Dial("tcp", to)
			if err != nil {
				one.Close()
				continue
			}
			go pass(one, other)
			go pass(other, one)
		}
	}()
	return door.Addr().String()
}

// Write implements io.Writer.
func (h *hostedRig) Write(b []byte) (int, error) {
	h.bytes.Add(int64(len(b)))
	return len(b), nil
}

// BenchmarkHostStep runs no-op steps here and on another host, in turns, in one run with a checkout.
func BenchmarkHostStep(b *testing.B) {
	h := newHostedRig(b, 1)
	took := map[string][]time.Duration{}
	var bytes, steps int64
	for b.Loop() {
		before := h.bytes.Load()
		run := fmt.Sprintf("r%d", steps)
		h.fairlead(h.dir, "run", "mixed.yaml", "--git-worktree", "--run-id", run)
		bytes += h.bytes.Load() - before
		var shown struct {
			Steps []struct {
				Agent string    `json:"agent"`
				Began time.Time `json:"started_at"`
				Ended time.Time `json:"ended_at"`
			} `json:"steps"`
		}
		if err := json.Unmarshal([]byte(h.fairlead(h.dir, "run", "show", run, "--json")), &shown); err != nil {
			b.Fatal(err)
		}
		for _, s := range shown.Steps[2:] { // the first two make the checkouts
			took[s.Agent] = append(took[s.Agent], s.Ended.Sub(s.Began))
		}
		steps += 10
	}
	here, there := middle(took["here"]), middle(took["there"])
	b.ReportMetric(millis(here), "ms/step-here")
	b.ReportMetric(millis(there), "ms/step-on-a-host")
	b.ReportMetric(there.Seconds()/here.Seconds(), "host/here")
	b.ReportMetric(float64(bytes)/float64(steps), "bytes/step-on-a-host")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkHostsAtRest measures a minute of a leader with ten hosts that do nothing, beside the same leader without them.
func BenchmarkHostsAtRest(b *testing.B) {
	needProc(b)
	const hosts = 10
	rest := func(h *hostedRig) (leader, host, own, hostOwn, bytes float64) {
		before, bytesBefore := processorTime(b, h.pid()), h.bytes.Load()
		var of time.Duration
		for _, one := range h.hosts {
			of -= processorTime(b, one.pid())
		}
		wait.Pause(time.Minute)
		_, own = memoryOf(b, h.pid())
		for _, one := range h.hosts {
			of += processorTime(b, one.pid())
			_, mine := memoryOf(b, one.pid())
			hostOwn += mine / hosts
		}
		return (processorTime(b, h.pid()) - before).Seconds(), of.Seconds() / hosts, own, hostOwn, float64(h.bytes.Load()-bytesBefore) / hosts
	}
	alone, with := newHostedRig(b, 0), newHostedRig(b, hosts)
	for b.Loop() {
		cpu0, _, own0, _, _ := rest(alone)
		cpu, cpuHost, own, hostOwn, bytes := rest(with)
		b.ReportMetric(cpu0, "s/min-leader-alone")
		b.ReportMetric(cpu, "s/min-leader-of-10")
		b.ReportMetric(cpuHost, "s/min-host")
		b.ReportMetric(bytes, "bytes/min-each-host")
		b.ReportMetric(own0/1e6, "MB-leader-alone")
		b.ReportMetric((own-own0)/1e6/hosts, "MB-leader-each-host")
		b.ReportMetric(hostOwn/1e6, "MB-host")
	}
	b.ReportMetric(0, "ns/op")
}
