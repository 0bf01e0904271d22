package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// signal sends to processes that were seen just now; one that has gone meanwhile is no fault.
func (l *load) signal(to []body, sig syscall.Signal) {
	for _, b := range to {
		if b.lives() {
			_ = syscall.Kill(b.pid, sig)
		}
	}
}

// some draws from the living: at least one where there is one.
func (l *load) some(which func(body) bool) []body {
	var all []body
	for _, b := range l.census() {
		if which(b) {
			all = append(all, b)
		}
	}
	l.rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if len(all) == 0 {
		return nil
	}
	return all[:1+l.rnd.IntN(len(all))]
}

func shims(b body) bool   { return b.shim }
func noShims(b body) bool { return !b.shim }

// spooled remembers what a shim had spooled before we kill it.
func (l *load) spooled(doomed []body) {
	for _, b := range doomed {
		if !b.shim {
			continue
		}
		size := int64(0)
		if info, err := os.Stat(filepath.Join(l.rig.dir, ".fairlead", "sessions", b.session, "spool")); err == nil {
			size = info.Size()
		}
		l.killed[b.session] = size
	}
}

func killDaemon(l *load) {
	l.rig.kill()
	pass(l.upTo(150 * time.Millisecond))
	l.up()
}

func killShims(l *load) {
	doomed := l.some(shims)
	l.spooled(doomed)
	l.signal(doomed, syscall.SIGKILL)
}

func killAgents(l *load) { l.signal(l.some(noShims), syscall.SIGKILL) }

// killAll is what a power cut does to processes: all of them, at once. A process that was
// about to be started is met by a second look.
func killAll(l *load) {
	l.killEverybody()
	pass(l.upTo(50 * time.Millisecond))
	l.up()
}

func (l *load) killEverybody() {
	l.rig.kill()
	for range 100 {
		all := l.census()
		if len(all) == 0 {
			break
		}
		l.spooled(all)
		l.rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		l.signal(all, syscall.SIGKILL)
	}
}

// stopDaemon puts the daemon to sleep, as a laptop does. A second one must not take its
// place meanwhile, and what the agents do must not be lost on it.
func stopDaemon(l *load) {
	pid := l.rig.daemon.Process.Pid
	l.must(syscall.Kill(pid, syscall.SIGSTOP))
	pass(l.upTo(700 * time.Millisecond))
	switch l.rnd.IntN(3) {
	case 0:
		l.refusedUp("it sleeps")
	case 1:
		killAgents(l)
	}
	l.must(syscall.Kill(pid, syscall.SIGCONT))
}

// refusedUp wants a second daemon to be refused with words.
func (l *load) refusedUp(why string) {
	second := &rig{t: l.t, dir: l.rig.dir}
	said, err := second.tryUp()
	if err == nil {
		l.wrong(&l.tally.Doubles, "a second daemon got ready (%s)", why)
		second.kill()
		return
	}
	l.exitsWithWords(said, err, "fairlead")
}

// exitsWithWords wants exit code 1 and a sentence that has the words in it.
func (l *load) exitsWithWords(said string, err error, words ...string) {
	if !strings.Contains(err.Error(), "exit status 1") {
		l.wrong(&l.tally.Other, "it ended by %v: %s", err, said)
	}
	for _, w := range words {
		if !strings.Contains(said, w) {
			l.wrong(&l.tally.Other, "it says %q, and nothing of %q; %s", said, w, l.damaged)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally.Refused++
}

func (l *load) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatalf("round %d: %v", l.round, err)
	}
}

// sleeper is a process of a session that the daemon says runs, put to sleep.
type sleeper struct {
	body
	agent string
}

// lull stops an agent's process, or its shim, in the middle of a session.
func (l *load) lull(shim bool) (sleeper, bool) {
	view, err := l.team()
	l.must(err)
	seen := l.census()
	l.rnd.Shuffle(len(seen), func(i, j int) { seen[i], seen[j] = seen[j], seen[i] })
	for _, b := range seen {
		for _, a := range view.Agents {
			if a.Session == nil || a.Session.ID != b.session || a.Session.Phase != "running" || b.shim != shim ||
				!shim && b.pid != a.Session.PID {
				continue
			}
			if !b.lives() || syscall.Kill(b.pid, syscall.SIGSTOP) != nil {
				continue
			}
			if _, err := os.Stat(filepath.Join(l.rig.dir, ".fairlead", "sessions", b.session, "exit.json")); err == nil ||
				l.over(b.session) {
				_ = syscall.Kill(b.pid, syscall.SIGCONT) // it was on its way out
				continue
			}
			return sleeper{body: b, agent: a.Name}, true
		}
	}
	return sleeper{}, false
}

// over says whether a session's agent is gone.
func (l *load) over(session string) bool {
	for _, b := range l.census() {
		if b.session == session && !b.shim {
			return false
		}
	}
	return true
}

// stillThere wants the agent to be shown as what it is: at work, in the same session.
func (l *load) stillThere(s sleeper, doubtful bool) {
	view, err := l.team()
	l.must(err)
	for _, a := range view.Agents {
		if a.Name != s.agent {
			continue
		}
		switch {
		case a.Badge != "RUNNING" || a.Session == nil || a.Session.ID != s.session:
			l.wrong(&l.tally.Statuses, "process %d of %s sleeps and lives, and it says %s, session %+v", s.pid, s.session, a.Badge,
				a.Session)
		case doubtful && a.Doubt == "":
			l.wrong(&l.tally.Statuses, "the shim of %s sleeps, and nothing is said of it", s.session)
		}
	}
}

func (l *load) wake(s sleeper) { _ = syscall.Kill(s.pid, syscall.SIGCONT) }

func stopAgent(l *load) {
	s, ok := l.lull(false)
	if !ok {
		return // no agent was at work
	}
	pass(l.upTo(400 * time.Millisecond))
	l.stillThere(s, false)
	l.wake(s)
}

// stopShim stops a shim; its agent writes on until the pipe is full, or to its end.
func stopShim(l *load) {
	s, ok := l.lull(true)
	if !ok {
		return
	}
	pass(l.upTo(800 * time.Millisecond))
	l.stillThere(s, true)
	l.wake(s)
}

// stopShimKillDaemon has the next daemon meet a shim that does not answer. It may not
// guess: neither end the session nor start it again.
func stopShimKillDaemon(l *load) {
	s, ok := l.lull(true)
	l.rig.kill()
	if !ok {
		l.up()
		return
	}
	began := time.Now()
	l.up()
	if took := time.Since(began); took > rigWait/4 {
		l.wrong(&l.tally.Other, "one shim that sleeps held the daemon up for %s", took)
	}
	pass(l.upTo(300 * time.Millisecond))
	l.stillThere(s, false)
	l.wake(s)
}

// raceDaemons starts twenty at once for one folder, at times beside one that is being killed.
func raceDaemons(l *load) {
	const racers = 20
	alive := l.rnd.IntN(3) == 0
	if !alive {
		l.rig.kill()
	}
	type outcome struct {
		rig  *rig
		said string
		err  error
	}
	ended := make(chan outcome, racers)
	for range racers {
		go func() {
			s := &rig{t: l.t, dir: l.rig.dir}
			said, err := s.tryUp()
			ended <- outcome{s, said, err}
		}()
	}
	if alive {
		pass(l.upTo(300 * time.Millisecond))
		l.rig.kill()
	}
	var ready []*rig
	for range racers {
		switch o := <-ended; {
		case o.err == nil:
			ready = append(ready, o.rig)
		default:
			l.exitsWithWords(o.said, o.err, "fairlead down")
		}
	}
	switch {
	case len(ready) == 0 && alive: // all of them came before it was gone
		l.up()
		return
	case len(ready) != 1:
		l.wrong(&l.tally.Doubles, "%d of %d daemons got ready", len(ready), racers)
	}
	for i, s := range ready {
		if i == 0 {
			l.rig.daemon, l.rig.url, l.rig.heard = s.daemon, s.url, s.heard
			continue
		}
		s.kill()
	}
	if l.rig.daemon == nil {
		l.up()
	}
}

// monotonicBack has the next daemon live where the machine has been up for less long.
func monotonicBack(k *torture) {
	if out, err := exec.Command("unshare", "-UrT", "--monotonic", "-1", "true").CombinedOutput(); err != nil {
		k.tally.Skipped = fmt.Sprintf("this machine has no time namespace for us: %v: %s", err, out)
		return
	}
	underLoad(func(l *load) {
		l.rig.kill()
		if l.rnd.IntN(3) == 0 {
			l.up() // and forward again
			return
		}
		said, err := l.rig.tryUp("unshare", "-UrT", "--monotonic", fmt.Sprintf("-%d", 1+l.rnd.IntN(600)))
		if err != nil {
			l.t.Fatalf("round %d: the daemon did not come back: %v: %s", l.round, err, said)
		}
	})(k)
}

// kill is a blow that a lively scene is dealt. Exact: who is at work lives, so that everything has to
// be there once.
type kill struct {
	name  string
	small bool // a few rounds of it belong to the ordinary tests
	exact bool
	deal  func(*load)
}

// dealKills plays a scene once for each kill, and shows what was counted.
func dealKills(t *testing.T, scene string, kills []kill, play func(k *torture, exact bool, strike func(*load))) {
	rounds := 1
	if n, err := strconv.Atoi(os.Getenv("FAIRLEAD_TORTURE")); err == nil && n > 0 {
		rounds = n
	}
	seed, err := strconv.ParseUint(os.Getenv("FAIRLEAD_TORTURE_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: FAIRLEAD_TORTURE_SEED=%d FAIRLEAD_TORTURE=%d plays it again", seed, seed, rounds)
	var table []tally
	for _, b := range kills {
		if rounds <= tortureSmall && !b.small {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			k := &torture{t: t, rnd: newRand(seed), rounds: rounds}
			k.tally.Blow = scene + "_" + b.name
			defer func() { table = append(table, k.tally) }()
			defer k.verdict(seed)
			begun := time.Now()
			defer func() { k.tally.Took = time.Since(begun).Round(100 * time.Millisecond) }()
			play(k, b.exact, b.deal)
		})
	}
	t.Log("\n" + tableOf(table))
}
