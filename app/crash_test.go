package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// cut says at which act an engine crashes, and whether that act was done.
type cut struct {
	last   int
	undone bool
}

// restartIfDead opens the next engine after a crash.
func (b *bubble) restartIfDead() {
	b.t.Helper()
	b.settle()
	if b.engine != nil && !b.crashPoint.isDead() {
		return
	}
	b.discardEngine()
	b.start()
}

// discardEngine waits for a crashed engine and removes it.
func (b *bubble) discardEngine() {
	if b.engine == nil {
		return
	}
	b.crashed = true
	b.cancel()
	<-b.ran // its result does not matter after a crash
	b.files.close()
	b.engine = nil
}

// retryCommand repeats a command until it is known to be accepted. As a person does after a crash,
// it first checks whether it was. Each command has its own note.
func (b *bubble) retryCommand(agent, desired, note string) {
	b.t.Helper()
	for range 3 {
		b.restartIfDead()
		if slices.ContainsFunc(b.history(), func(ch journal.Change) bool { return strings.Contains(string(ch.Data), note) }) {
			return
		}
		if _, err := b.engine.Agents.Command(b.t.Context(), human, agent, desired, note); err == nil {
			return
		}
	}
	b.t.Errorf("%s %s was never accepted", agent, desired)
}

// crashScenario plays a day with orders by file and API, independent of crashes.
func crashScenario(b *bubble) {
	t := b.t
	b.host.play = func(s *fakeSession) {
		s.say("usage 10 5 0.5")
		s.lasts(10 * time.Second)
		if agentIn(s.id) == "flaky" {
			s.exit(3)
			return
		}
		s.say("turn 1 1 0.25")
		s.say("stop ok")
	}
	pass := func(d time.Duration) {
		for range 4 { // a crash in between must be noticed
			b.after(d / 4)
			b.restartIfDead()
		}
	}
	b.retryCommand("coder", "run_once", "first order")
	pass(20 * time.Second)

	b.restartIfDead()
	b.disk.writeDesired("pm", "continuous", "by file", time.Now())
	pass(25 * time.Second)
	b.disk.writeDesired("pm", "pause", "enough", time.Now())
	paused := time.Now()
	pass(20 * time.Second)

	hold := func(on bool) {
		for range 3 {
			b.restartIfDead()
			if _, err := b.engine.Agents.Hold(t.Context(), human, on, ""); err == nil {
				return
			}
		}
	}
	hold(true)
	held := time.Now()
	b.retryCommand("coder", "run_once", "second order")
	pass(20 * time.Second)
	released := time.Now()
	hold(false)
	pass(20 * time.Second)

	b.retryCommand("flaky", "continuous", "third order")
	pass(40 * time.Second)
	b.retryCommand("flaky", "pause", "fourth order")
	pass(20 * time.Second)
	for range 3 {
		b.restartIfDead()
		if b.engine.Agents.Stop(t.Context(), human, false) == nil {
			b.settle()
			if !b.crashPoint.isDead() {
				break
			}
		}
	}
	select {
	case <-b.engine.Loop.Stopped():
	case <-time.After(time.Hour):
		t.Error("the stop was never complete")
	}

	for _, id := range b.host.order {
		s := b.host.session(id)
		if agentIn(id) == "pm" && s.start.After(paused) {
			t.Errorf("%s was started %v after the file said pause", id, s.start.Sub(paused))
		}
		if s.start.After(held) && s.start.Before(released) {
			t.Errorf("%s was started while the team was held", id)
		}
	}
	if n := b.host.startsOf("coder"); n != 2 {
		t.Errorf("coder was started %d times: two orders", n)
	}
	if n := b.host.startsOf("pm"); n < 2 || n > 4 {
		t.Errorf("pm was started %d times in 25 s", n)
	}
	if n := b.host.startsOf("flaky"); n < 2 {
		t.Errorf("flaky was started %d times", n)
	}
}

// checkConsistent checks what must hold whenever the engine is idle.
func (b *bubble) checkConsistent() {
	t := b.t
	t.Helper()
	if err := b.engineTeamIsReplayed(); err != nil {
		t.Error(err)
	}
	all := b.replayed()
	seen := map[string]bool{}
	for _, id := range b.host.order {
		if seen[id] {
			t.Errorf("%s was started twice", id)
		}
		seen[id] = true
		a := all.Agents[agentIn(id)]
		switch s := b.host.session(id); {
		case a.Session != nil && a.Session.ID == id:
		case !s.isOver():
			t.Errorf("%s runs and is not in the journal", id)
		case !s.acked && !b.crashed: // an acknowledgement lost in a crash is harmless, because the end is in the journal
			t.Errorf("the end of %s was not acknowledged", id)
		}
	}
	for name, a := range all.Agents {
		if a.Session != nil && b.host.session(a.Session.ID) == nil {
			t.Errorf("%s was never started", a.Session.ID)
		}
		if a.Control.UnderWay() != (a.Session != nil) {
			t.Errorf("%s is %s, with session %+v", name, a.Control.State, a.Session)
		}
		file := all.File(a)
		if got := b.disk.state(name); got.DesiredState != file.Desired || got.CurrentState != file.Current ||
			strings.TrimPrefix(got.Note, "no reason given") != file.Note {
			t.Errorf("the file of %s says %+v, but the journal %+v", name, got, file)
		}
	}
}

// engineTeamIsReplayed checks that the team in memory equals the replayed one.
func (b *bubble) engineTeamIsReplayed() error {
	if b.engine == nil {
		return nil
	}
	var live []byte
	var head uint64
	if err := b.engine.Loop.View(b.t.Context(), func(t *team.Team) {
		live, _ = json.Marshal(t)
		head = b.engine.Loop.Head()
	}); err != nil {
		return err
	}
	replayed, err := json.Marshal(b.replayed())
	if err != nil {
		return err
	}
	if string(live) != string(replayed) || head != uint64(len(b.history())) {
		return fmt.Errorf("the replay of the journal (%d) differs from the engine (%d):\n%s\n%s", len(b.history()), head, replayed, live)
	}
	return nil
}

// TestCrashAtEveryStep crashes the engine at every act, before or after the act was done. No
// session starts twice, no order and no desired state is lost, and in the end the files are
// correct.
func TestCrashAtEveryStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	play := func(t *testing.T, c cut) (acts int) {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t, dir, "coder", "pm", "flaky")
			defer b.end()
			b.open(c.last, c.undone)
			first := b.crashPoint
			b.run()
			crashScenario(b)
			b.checkConsistent()
			acts = first.count()
		})
		return acts
	}
	acts := play(t, cut{})
	if acts < 60 {
		t.Fatalf("only %d acts; the scenario must do more", acts)
	}
	t.Logf("%d acts", acts)
	everyCut(t, acts, func(t *testing.T, c cut) { play(t, c) })
}

// randomSeeds returns the number of random days that a test plays.
func randomSeeds() uint64 {
	switch {
	case testsize.Long():
		return 5000
	case testsize.Race, !testsize.CI():
		return 48
	}
	return 200
}

// everyCut plays a scenario once for each crash in it: with FAIRLEAD_LONG=ci before and after each
// act; otherwise, and with the race detector, before one act and after the next.
func everyCut(t *testing.T, acts int, play func(t *testing.T, c cut)) {
	t.Helper()
	half := testsize.Race || !testsize.CI()
	for last := 1; last <= acts; last++ {
		for _, undone := range []bool{false, true} {
			if half && undone == (last%2 == 0) {
				continue
			}
			t.Run(fmt.Sprintf("act=%d,undone=%v", last, undone), func(t *testing.T) { play(t, cut{last, undone}) })
		}
	}
}

// TestRandomDays applies random orders, writes and faults. To repeat a run: -run
// 'TestRandomDays/seed=7$'.
func TestRandomDays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for seed := range randomSeeds() {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomDay(t, dir, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func randomDay(t *testing.T, dir string, rnd *rand.Rand) {
	b := newBubble(t, dir, "coder", "pm", "flaky")
	defer b.end()
	b.agent("pm").CleanupEvery = 2
	b.agent("coder").Limits.Session = 30 * time.Second
	lengths := make([]time.Duration, 512) // chosen here, because sessions run in their own goroutines
	for i := range lengths {
		lengths[i] = time.Duration(rnd.IntN(60_000)) * time.Millisecond
	}
	b.host.play = func(s *fakeSession) {
		b.host.mu.Lock()
		n := len(b.host.order)
		b.host.mu.Unlock()
		d := lengths[n%len(lengths)]
		s.say("usage 10 5 0.5")
		s.lasts(d)
		s.say("turn 1 1 0.25")
		switch {
		case agentIn(s.id) == "flaky" && d > 20*time.Second:
			s.exit(3)
		case d < 5*time.Second:
			s.say("stop ok")
		}
	}
	agents := []string{"coder", "pm", "flaky"}
	words := []string{"continuous", "pause", "run_once", "run_cleanup"}
	for range 40 {
		if b.engine == nil || b.crashPoint.isDead() {
			b.discardEngine()
			last := 0
			if rnd.IntN(2) == 0 {
				last = 1 + rnd.IntN(60)
			}
			b.open(last, rnd.IntN(2) == 0)
			b.run()
			b.settle()
			continue
		}
		agent, word := agents[rnd.IntN(len(agents))], words[rnd.IntN(len(words))]
		switch rnd.IntN(12) {
		case 0, 1, 2:
			_, _ = b.engine.Agents.Command(t.Context(), human, agent, word, "")
		case 3, 4:
			b.disk.writeDesired(agent, word, "by file", time.Now())
		case 5:
			s := b.disk.state(agent)
			s.CurrentState = word // a loop of Fairlead owns this field
			b.disk.put(agent, s.Render())
		case 6:
			b.disk.put(agent, []byte(`{"desired_state": contin`))
		case 7:
			b.disk.put(agent, nil)
		case 8:
			_, _ = b.engine.Agents.Hold(t.Context(), human, rnd.IntN(2) == 0, "")
		case 9:
			if ids := b.host.running(); len(ids) > 0 {
				b.host.session(ids[rnd.IntN(len(ids))]).finish(session.Exit{Lost: rnd.IntN(2) == 0, Why: "killed"})
			}
		case 10:
			if err := b.stop(); err != nil && !errors.Is(err, errDead) {
				t.Errorf("the engine failed: %v", err)
			}
			continue
		case 11:
			b.after(time.Duration(rnd.IntN(90)) * time.Second)
		}
		b.settle()
	}
	b.restartIfDead()
	// All agents must stop: the latest desired state applies, regardless of earlier ones.
	for range 3 {
		b.restartIfDead()
		if _, err := b.engine.Agents.Hold(t.Context(), human, false, ""); err == nil {
			break
		}
	}
	b.restartIfDead()
	for _, agent := range agents {
		b.disk.writeDesired(agent, agentstate.Pause, "good night", time.Now().Add(time.Second))
	}
	b.after(5 * time.Minute)
	b.restartIfDead()
	b.after(5 * time.Minute)
	for _, agent := range agents {
		if s := b.disk.state(agent); s.DesiredState != control.WordPause || s.CurrentState != control.WordPause {
			t.Errorf("%s: %+v", agent, s)
		}
	}
	if ids := b.host.running(); len(ids) > 0 {
		t.Errorf("still running: %v", ids)
	}
	b.checkConsistent()
}
