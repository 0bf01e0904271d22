package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/internal/test/ports"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// engineRig are three engine hosts on loopback, each a process.
type engineRig struct {
	b   *testing.B
	exe string
	all []*benchRig
}

func (e *engineRig) try(dir, in string, words ...string) (string, error) {
	cmd := exec.Command(e.exe, append(words, "--dir", dir)...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(in)
	said, err := cmd.CombinedOutput()
	return string(said), err
}

func (e *engineRig) fairlead(dir, in string, words ...string) string {
	e.b.Helper()
	said, err := e.try(dir, in, words...)
	if err != nil {
		e.b.Fatalf("fairlead %v: %v: %s", words, err, said)
	}
	return said
}

func newEngineRig(b *testing.B) *engineRig {
	b.Helper()
	exe, _ := built(b)
	e := &engineRig{b: b, exe: exe}
	first := newBenchRig(b, exe, map[string]string{"fairlead.yaml": threeAtRest, ".gitignore": ".agents/\n.fairlead/\nagent_state.json\n*.lock\n"})
	git := func(words ...string) {
		if said, err := exec.Command("git", append([]string{"-C", first.dir, "-c", "user.name=x", "-c", "user.email=x@example.com"}, words...)...).CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v: %s", words, err, said)
		}
	}
	git("init", "-q", "-b", "main")
	git("add", "-A")
	git("commit", "-qm", "x")
	e.fairlead(first.dir, "", "cluster", "init", "--name", "a", "--team", "web", "--listen", ports.Address(2))
	first.up()
	e.all = []*benchRig{first}
	for _, name := range []string{"b", "c"} {
		var invited api.Invitation
		if err := json.Unmarshal([]byte(e.fairlead(first.dir, "", "host", "invite", "--engine", "--json")), &invited); err != nil {
			b.Fatal(err)
		}
		one := newBenchRig(b, exe, nil)
		git("clone", "-q", first.dir, filepath.Join(one.dir, "repo"))
		one.dir = filepath.Join(one.dir, "repo")
		e.fairlead(one.dir, invited.Token, "host", "join", "-", "--name", name, "--engine", "--listen", ports.Address(2))
		one.up()
		e.all = append(e.all, one)
	}
	b.Cleanup(func() { // the last of three could not end as it should: no majority takes its changes
		for _, one := range e.all {
			_ = one.daemon.Process.Kill()
			_ = one.daemon.Wait()
			one.daemon = nil
		}
	})
	e.whole()
	return e
}

// whole waits until all three have the journal and know the leader.
func (e *engineRig) whole() {
	e.b.Helper()
	wait.Until(e.b, "three copies of the journal", func() bool {
		for _, one := range e.all {
			is, err := e.try(one.dir, "", "cluster", "status")
			hosts, herr := e.try(one.dir, "", "hosts")
			if err != nil || herr != nil || !strings.Contains(is, "replicated by three") || strings.Count(hosts, " joined ") != len(e.all) {
				return false
			}
		}
		return true
	})
}

// leader is the one that leads.
func (e *engineRig) leader() (at int) {
	e.b.Helper()
	hosts := e.fairlead(e.all[0].dir, "", "hosts")
	for line := range strings.Lines(hosts) {
		if name, _, is := strings.Cut(line, " "); is && strings.Contains(line, "it leads the team") {
			return int(name[0] - 'a')
		}
	}
	e.b.Fatal(hosts)
	return 0
}

// BenchmarkTakeover takes the leader of three engine hosts away, and measures until an order is taken: by the first of the other two,
// and by both.
func BenchmarkTakeover(b *testing.B) {
	for _, how := range []struct {
		name   string
		signal syscall.Signal
	}{{"killed", syscall.SIGKILL}, {"paused", syscall.SIGSTOP}} {
		b.Run(how.name, func(b *testing.B) {
			e := newEngineRig(b)
			var first, both []float64
			for b.Loop() {
				lost := e.all[e.leader()]
				began := time.Now()
				if err := lost.daemon.Process.Signal(how.signal); err != nil {
					b.Fatal(err)
				}
				took := make(chan float64, len(e.all))
				var orders sync.WaitGroup
				for _, one := range e.all {
					if one == lost {
						continue
					}
					orders.Go(func() {
						wait.Until(b, "an order is taken", func() bool {
							_, err := e.try(one.dir, "", "hold", "--note", fmt.Sprint(len(first)))
							return err == nil
						})
						took <- time.Since(began).Seconds()
					})
				}
				orders.Wait()
				first, both = append(first, <-took), append(both, <-took)
				if how.signal == syscall.SIGKILL {
					_ = lost.daemon.Wait()
					lost.up()
				} else if err := lost.daemon.Process.Signal(syscall.SIGCONT); err != nil {
					b.Fatal(err)
				}
				e.whole()
			}
			b.ReportMetric(middle(first), "s/order-at-the-first")
			b.ReportMetric(middle(both), "s/order-at-both")
			b.ReportMetric(slices.Max(both), "s/most")
			b.ReportMetric(0, "ns/op")
		})
	}
}
