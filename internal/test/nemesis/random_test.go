package nemesis

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// How many rounds of random faults there are, and what repeats the faults of a test.
const (
	roundsVar = "FAIRLEAD_NEMESIS_ROUNDS"
	seedVar   = "FAIRLEAD_NEMESIS_SEED"
)

// random is how many rounds there are, some if nothing else is said, and what makes them.
func random(t *testing.T, some int) (rounds int, rnd *rand.Rand) {
	t.Helper()
	rounds, seed := some, uint64(time.Now().UnixNano())
	var err, bad error
	if text := os.Getenv(roundsVar); text != "" {
		rounds, err = strconv.Atoi(text)
	}
	if text := os.Getenv(seedVar); text != "" {
		seed, bad = strconv.ParseUint(text, 10, 64)
	}
	if err != nil || bad != nil {
		t.Fatal(roundsVar, err, seedVar, bad)
	}
	t.Logf("seed %d, for %s", seed, seedVar)
	return rounds, rand.New(rand.NewPCG(seed, 0))
}

// TestRandomFaults makes one random fault a round, for a random time, while tasks are worked on. In half of the
// rounds the work ends during the fault. After each, all hosts come back, each task ends once, and the rules held.
func TestRandomFaults(t *testing.T) {
	w := newWorld(t, "b", "c", "d")
	defer w.show()
	rounds, rnd := random(t, 5)
	stop := w.orders()
	defer stop()
	for round := range rounds {
		runs := []string{w.task("One"), w.task("Two")}
		n := w.works(runs[0])
		w.works(runs[1])
		fault := faults[rnd.IntN(len(faults))]
		lasts, during := time.Duration(rnd.Int64N(int64(80*time.Second))), rnd.IntN(2) == 0
		t.Logf("round %d: host %s, %s for %v, its work ends during that: %v", round, n.Host, fault.name, lasts.Round(time.Millisecond),
			during)
		undo, at := fault.do(w, n.Host), now()
		wait.Pause(lasts / 2)
		if during {
			w.ok(os.WriteFile(filepath.Join(w.dir, finish, runs[0]), nil, 0o600))
		}
		wait.Pause(lasts - lasts/2)
		if fault.ends {
			w.inTime(n, at)
		}
		undo()
		for _, run := range runs {
			w.finish(run)
		}
		for _, host := range w.hosts {
			w.is(host, "joined")
		}
		w.check()
		if t.Failed() {
			return
		}
	}
}

// faults are those that can be undone. ends says that the host hears no leader meanwhile, so its sessions end.
var faults = []struct {
	name string
	ends bool
	do   func(w *world, host string) (undo func())
}{
	{"link down", true, func(w *world, host string) func() { w.Cut(leader, host); return w.Heal }},
	{"does not hear", true, func(w *world, host string) func() { w.CutOneWay(leader, host); return w.Heal }},
	{"is not heard", true, func(w *world, host string) func() { w.CutOneWay(host, leader); return w.Heal }},
	{"daemon killed", true, func(w *world, host string) func() { w.kill(host); return func() { w.up(host) } }},
	{"power lost", true, func(w *world, host string) func() { w.powerLost(host); return func() { w.up(host) } }},
	{"leader killed", true, func(w *world, _ string) func() { w.kill(leader); return func() { w.up(leader) } }},
	{"paused", false, func(w *world, host string) func() {
		w.paused[host] = true
		w.Signal(host, syscall.SIGSTOP)
		return func() { w.Signal(host, syscall.SIGCONT) }
	}},
}

// engineFaults are those of teams with engine hosts. ends says that the sessions of the host end.
var engineFaults = []struct {
	name string
	ends bool
	do   func(w *world, host, other string) (undo func())
}{
	{"daemon killed", true, func(w *world, host, _ string) func() { w.kill(host); return func() { w.up(host) } }},
	{"power lost", true, func(w *world, host, _ string) func() { w.powerLost(host); return func() { w.up(host) } }},
	{"cut off from all", true, func(w *world, host, _ string) func() {
		w.cutOff(host, append([]string{leader}, w.hosts...)...)
		return w.Heal
	}},
	{"cut off from the engine hosts", true, func(w *world, host, _ string) func() { w.cutOff(host, leader, "b", "c"); return w.Heal }},
	{"cut off from one", false, func(w *world, host, other string) func() { w.cutOff(host, other); return w.Heal }},
	{"does not hear one", false, func(w *world, host, other string) func() {
		if host != other {
			w.CutOneWay(other, host)
		}
		return w.Heal
	}},
	{"two engine hosts killed", false, func(w *world, host, other string) func() {
		if host == other || w.engine(host) == nil {
			host, other = leader, "b"
		}
		w.kill(host)
		w.kill(other)
		return func() { w.up(host); w.up(other) }
	}},
	{"the lead is moved", false, func(w *world, _, other string) func() { w.lead(other); return func() {} }},
	{"paused", false, func(w *world, host, _ string) func() {
		w.paused[host] = true
		w.Signal(host, syscall.SIGSTOP)
		return func() { w.Signal(host, syscall.SIGCONT) }
	}},
}

// TestRandomEngineFaults does the same with three engine hosts, and leadership that moves.
func TestRandomEngineFaults(t *testing.T) {
	w := newEngines(t)
	defer w.show()
	rounds, rnd := random(t, 3)
	w.keeper()
	stop := w.orders()
	defer func() {
		t.Logf("measured: the longest time between two acknowledged orders was %v; %d were acknowledged",
			stop().Round(100*time.Millisecond), w.acks())
	}()
	all := []string{leader, "b", "c", plain}
	for round := range rounds {
		home, other, fault := all[rnd.IntN(3)], all[rnd.IntN(3)], engineFaults[rnd.IntN(len(engineFaults))]
		host := home
		if one := all[rnd.IntN(len(all))]; rnd.IntN(2) == 0 {
			host = one
		}
		lasts, during := time.Duration(rnd.Int64N(int64(80*time.Second))), rnd.IntN(2) == 0
		w.lead(home)
		w.whole()
		run := w.task("One")
		n := w.works(run)
		t.Logf("round %d: %s leads, %s works, host %s (other: %s) %s for %v, the work ends during that: %v", round, home, n.Host, host,
			other, fault.name, lasts.Round(time.Millisecond), during)
		undo, at := fault.do(w, host, other), now()
		wait.Pause(lasts / 2)
		if during {
			w.ok(os.WriteFile(filepath.Join(w.dir, finish, run), nil, 0o600))
		}
		wait.Pause(lasts - lasts/2)
		if fault.ends && n.Host == host {
			w.inTime(n, at)
		}
		undo()
		w.whole()
		w.end(run)
		w.check()
		t.Logf("round %d: over after %v; %d orders were acknowledged, %d changes", round, (now() - at).Round(time.Second), w.acks(),
			len(w.longest().changes))
		if t.Failed() {
			return
		}
	}
}
