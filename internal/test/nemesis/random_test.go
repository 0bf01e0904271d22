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

// roundsVar is how many rounds of random faults there are.
const roundsVar = "FAIRLEAD_NEMESIS_ROUNDS"

// TestRandomFaults makes one random fault a round, for a random time, while tasks are worked on. In half of the
// rounds the work ends during the fault. After each, all hosts come back, each task ends once, and the rules held.
func TestRandomFaults(t *testing.T) {
	rounds := 5
	if text := os.Getenv(roundsVar); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(roundsVar, err)
		}
	}
	w := newWorld(t, "b", "c", "d")
	defer w.show()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("FAIRLEAD_NEMESIS_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		w.ok(err)
	}
	t.Logf("seed %d, for FAIRLEAD_NEMESIS_SEED", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	stop := w.orders()
	defer stop()
	for round := range rounds {
		runs := []string{w.task("One"), w.task("Two")}
		n := w.works(runs[0])
		w.works(runs[1])
		fault := faults[rnd.IntN(len(faults))]
		lasts, during := time.Duration(rnd.Int64N(int64(80*time.Second))), rnd.IntN(2) == 0
		t.Logf("round %d: host %s, %s for %v, its work ends during that: %v", round, n.Host, fault.name, lasts.Round(time.Millisecond), during)
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
