package sim

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/files/agentstate"
)

// Act is one choice of the director. It contains everything that it needs, so a day from which some
// acts were removed still runs. An act that is impossible at its moment does nothing.
type Act struct {
	Do     string `json:"do"`
	Target string `json:"whom,omitempty"` // an agent, a session, or the key of an operation at the gate
	Word   string `json:"word,omitempty"`
	MS     int64  `json:"ms,omitempty"`
}

func (a Act) String() string {
	text := strings.TrimSpace(strings.Join([]string{a.Do, a.Target, a.Word}, " "))
	if a.MS != 0 {
		text += " " + (time.Duration(a.MS) * time.Millisecond).String()
	}
	return strings.Join(strings.Fields(text), " ")
}

// Step is one line of a trace: an act and its effects.
type Step struct {
	N       int      `json:"n"`
	AtMS    int64    `json:"at_ms"` // simulated time since the start of the day
	Act     Act      `json:"act"`
	Effects []string `json:"came,omitempty"`
}

// actKinds lists the kinds of acts with their weights. A higher weight makes a kind more likely.
var actKinds = []struct {
	do     string
	weight int
}{
	{"order", 9},
	{"write", 8},
	{"hold", 1},
	{"release", 2},
	{"write-current", 2},
	{"corrupt", 2},
	{"delete", 2},
	{"torn-write", 3},
	{"lose-shim", 2},
	{"kill", 2},
	{"repeat-notice", 2},
	{"pass", 12},
	{"crash", 2},
	{"stop", 1},
	{"down", 1},
	{"power-failure", 1},
	{"second-engine", 1},
	{"next-day", 1},
	{"clock-back", 1},
	{"say", 7},
	{"poll", 5},
	{"grant", 1},
	{"skip", 1},
	{"override", 1},
	{"assign", 1},
	{"remove", 1},
	{"disable", 1},
	{"enable", 1},
	{"leave", 1},
	{"speak-late", 1},
	{"calm", 2},
	{"settle", 10},
}

// mix is the acts and faults that one day can draw. A day has only some of them, because some
// faults hide others.
type mix struct {
	actKinds []string // each kind as often as its weight
	faults   []outcome
}

func drawMix(rnd *rand.Rand, seed uint64) mix {
	var m mix
	for _, d := range actKinds {
		if rnd.IntN(10) < 7 || d.do == "pass" || d.do == "settle" || d.do == "order" {
			m.actKinds = append(m.actKinds, slices.Repeat([]string{d.do}, d.weight)...)
		}
	}
	for _, f := range []outcome{fails, replyLost, crashBefore, crashAfter, raceWrite, notExecutable} {
		if rnd.IntN(10) < 5 {
			m.faults = append(m.faults, f)
		}
	}
	for _, d := range questionActKinds {
		if asks(seed) {
			m.actKinds = append(m.actKinds, slices.Repeat([]string{d.do}, d.weight)...)
		}
	}
	for _, d := range crewActKinds {
		// the order matters: a day without a lead must draw no random number here
		if hasLead(seed) && (rnd.IntN(10) < 7 || d.do == "summon" || d.do == "wake") {
			m.actKinds = append(m.actKinds, slices.Repeat([]string{d.do}, d.weight)...)
		}
	}
	return m
}

var (
	words = []string{
		control.WordContinuous, control.WordContinuous, control.WordRunOnce, control.WordRunOnce, control.WordRunCleanup,
		control.WordPause, control.WordPause, control.WordPause, "dance",
	}
	pauses  = []int64{5, 60, 400, 2_000, 9_000, 30_000, 100_000}
	skews   = []int64{0, 0, 0, 1, -3_000, 40_000, -3_600_000, 30 * 3_600_000}
	tearing = []int64{20, 200, 400, 900, 3_600_000}
)

func (w *world) draw(rnd *rand.Rand, m mix) Act {
	one := func(from []int64) int64 { return from[rnd.IntN(len(from))] }
	waiting := w.waiting()
	if n := len(waiting); n > 0 && rnd.IntN(100) < 60 {
		key := waiting[rnd.IntN(n)]
		if len(m.faults) > 0 && rnd.IntN(100) < 12 {
			f := m.faults[rnd.IntN(len(m.faults))]
			if fits(f, key) {
				return Act{Do: string(f), Target: key, Word: words[rnd.IntN(8)]}.trimmed()
			}
		}
		return Act{Do: string(proceeds), Target: key}
	}
	if w.alive() == nil && rnd.IntN(100) < 60 {
		return Act{Do: "start"}
	}
	a := Act{Do: m.actKinds[rnd.IntN(len(m.actKinds))], Target: agents[rnd.IntN(len(agents))], Word: words[rnd.IntN(len(words))]}
	switch a.Do {
	case "write":
		a.MS = one(skews)
	case "pass":
		a.MS = one(pauses)
	case "torn-write":
		a.MS, a.Word = one(tearing), words[rnd.IntN(8)]
	case "next-day":
		a.MS = int64(26 * time.Hour / time.Millisecond)
	case "clock-back":
		a.MS = int64(3 * time.Hour / time.Millisecond)
	}
	return drawReply(rnd, drawCrewAct(rnd, drawChannelAct(rnd, a))).trimmed()
}

// trimmed clears the fields that this kind of act does not use.
func (a Act) trimmed() Act {
	if _, is := channelActs[a.Do]; is {
		return a
	}
	if _, is := crewActs[a.Do]; is {
		return a
	}
	switch a.Do {
	case "order", "write", "write-current", "torn-write", string(raceWrite):
	case "reply", "revoke":
	case "corrupt", "delete", "lose-shim", "kill", "repeat-notice", string(proceeds), string(fails), string(replyLost), string(crashBefore),
		string(crashAfter), string(notExecutable):
		a.Word = ""
	default:
		a.Target, a.Word = "", ""
	}
	return a
}

// fits reports whether the operation with this key can have this outcome.
func fits(f outcome, key string) bool {
	of := kind(key)
	switch f {
	case raceWrite:
		return of == "write" || of == "install"
	case notExecutable:
		return of == "start"
	case replyLost:
		// not "type": the engine repeats an input write until it is confirmed, and the shim recognizes the repetition by its offset
		return slices.Contains([]string{"append", "start", "write", "install", "end", "ack"}, of)
	case fails, crashAfter:
		return of != "look"
	default:
		return true
	}
}

// do performs one act and waits until all goroutines are blocked again.
func (w *world) do(a Act) {
	if w.tracing {
		w.mu.Lock()
		w.trace = append(w.trace, Step{N: len(w.trace) + 1, AtMS: time.Since(w.began).Milliseconds(), Act: a})
		w.mu.Unlock()
	}
	d := time.Duration(a.MS) * time.Millisecond
	w.pass(time.Millisecond) // so that two acts never happen at the same moment
	switch a.Do {
	case string(proceeds), string(fails), string(replyLost), string(crashBefore), string(crashAfter), string(notExecutable):
		w.decide(a.Target, outcome(a.Do))
	case string(raceWrite):
		w.race(a.Target, a.Word)
	case "start":
		w.startIf(w.alive() == nil)
	case "second-engine":
		w.startIf(w.living() == 1)
	case "order":
		w.command(a.Target, a.Word)
	case "hold", "release":
		w.hold(a.Do == "hold")
	case "write":
		w.foreignWrite(a.Target, a.Word, d)
	case "torn-write":
		w.beginTornWrite(a.Target, a.Word, d)
	case "write-current", "corrupt", "delete":
		w.corruptFile(a)
	case "lose-shim", "kill":
		w.killSession(a)
	case "repeat-notice":
		w.repeatNotice(a.Target)
	case "pass", "next-day":
		w.pass(d)
	case "settle":
		w.settle()
	case "calm":
		w.checkSettled()
	case "end-of-day":
		w.endOfDay()
	case "crash":
		if l := w.alive(); l != nil {
			w.crash(l)
		}
	case "stop":
		w.stopEngine()
	case "down":
		w.order("down", "", func(ctx context.Context, l *engineRun) (uint64, error) {
			return 0, l.engine.Agents.Stop(ctx, byPerson, a.MS != 0)
		})
	case "reply", "revoke", "retry":
		fileWorld{w}.reply(a)
	case "power-failure":
		w.powerFailure()
	case "clock-back":
		w.mu.Lock()
		w.clockAhead = d
		w.mu.Unlock()
	default:
		if _, is := channelActs[a.Do]; is {
			channelWorld{w}.channelAct(a)
			break
		}
		if _, is := crewActs[a.Do]; is {
			crewWorld{w}.crewAct(a)
			break
		}
		panic("sim: unknown act: " + a.Do)
	}
	synctest.Wait()
}

func (w *world) startIf(may bool) {
	if !may {
		return
	}
	if err := w.openEngine(); err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		checks{w}.broken(replayIsLive, "cannot open an engine: %v", err)
	}
}

// race lets another program write a file just before the engine's own write proceeds.
func (w *world) race(key, word string) {
	if w.at(key) == nil {
		return
	}
	agent := strings.Fields(key)[1]
	if kind(key) == "install" {
		documentWorld{w}.raceDocumentWrite(key, agent+".json")
		return
	}
	note := w.note("desired state")
	write := func() {
		fileWorld{w}.put(agent, w.stateToWrite(agent, word, note, time.Millisecond).Render(), true, note)
	}
	w.mu.Lock()
	w.raceWrites[agent] = write
	w.mu.Unlock()
	w.decide(key, raceWrite)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.raceWrites[agent] != nil { // the engine's write was refused before the exchange; the other program's write still happens
		delete(w.raceWrites, agent)
		write()
		fileWorld{w}.written(agent)
	}
}

// corruptFile writes invalid content or another current state into a state file, or removes the
// file.
func (w *world) corruptFile(a Act) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.files[a.Target]
	state, whole := f.now.state()
	switch {
	case a.Do == "delete":
		f.now, f.extra = nil, ""
	case a.Do == "corrupt":
		fileWorld{w}.put(a.Target, []byte(fmt.Sprintf(`{"desired_state": contin%d`, w.writes)), true, "")
	case whole:
		state.CurrentState = a.Word
		was := *f
		if (fileWorld{w}).put(a.Target, state.Render(), true, ""); bytes.Equal(f.now.bytes, was.now.bytes) {
			f.extra = was.extra // the same content as before: a watcher cannot see a difference
		}
	}
	fileWorld{w}.written(a.Target)
}

// killSession ends the process of an agent: its shim disappears, or the process is killed.
func (w *world) killSession(a Act) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range w.running() {
		if agentIn(id) != a.Target {
			continue
		}
		s := w.sessions[id]
		if a.Do == "lose-shim" {
			s.leftProcesses = true // until an engine calls Sweep
			w.finish(s, session.Exit{Lost: true, Why: "its shim disappeared"})
			continue
		}
		w.finish(s, session.Exit{Code: -1, Signal: "SIGKILL", At: time.Now()})
	}
}

// repeatNotice delivers the last observation of a state file a second time.
func (w *world) repeatNotice(agent string) {
	l := w.alive()
	if l == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, ok := l.files.last[agent]; ok {
		l.files.queue = append(l.files.queue, last)
		select {
		case l.files.wake <- struct{}{}:
		default:
		}
	}
}

// stopEngine stops the engine as a signal does. The agents continue.
func (w *world) stopEngine() {
	l := w.alive()
	if l == nil {
		return
	}
	l.cancel()
	for range 3 { // a read waits for another program's unfinished write
		w.settle()
		w.pass(2 * tornFor)
	}
	w.settle()
	w.mu.Lock()
	defer w.mu.Unlock()
	checks{w}.check(becomesIdle, l.over, "engine %d was asked to stop and is still running", l.n)
}

// powerFailure ends engines, agents and shims. Changes that are not stored are lost. A file that
// was written less than a second ago may be empty, because its content was not synced.
func (w *world) powerFailure() {
	w.mu.Lock()
	lives := slices.Clone(w.engines)
	w.mu.Unlock()
	for _, l := range lives {
		w.crash(l)
	}
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.boot++
	for _, s := range w.sessions {
		if !s.isOver() {
			w.finish(s, session.Exit{Lost: true, Why: "the machine lost power"})
		}
		s.leftProcesses = false
	}
	for _, f := range w.files {
		if f.now != nil && f.now.foreign && time.Since(f.now.since) < time.Second {
			f.now.bytes, f.now.note, f.extra = nil, "", ""
		}
	}
}

// endOfDay ends every day in the same way. One engine runs without faults; then the latest desired
// states must apply, and each one-shot must run exactly once.
func (w *world) endOfDay() {
	w.mu.Lock()
	w.dayEnding = true
	w.mu.Unlock()
	w.checkOvertaken()
	w.oneEngine()
	w.hold(false)
	w.checkSettled()
	w.mu.Lock()
	stopping := w.truth.Stopping
	w.mu.Unlock()
	if stopping { // it finishes stopping first; the next engine is not asked to stop
		w.do(Act{Do: "stop"})
		w.oneEngine()
	}
	for _, agent := range agents {
		w.foreignWrite(agent, agentstate.Pause, time.Millisecond)
	}
	if (crewWorld{w}).lead() != "" {
		crewWorld{w}.putToSleep()
		w.settle()
	}
	w.settleLong("every agent was paused")
	w.pass(26 * time.Hour) // a new day, with new daily limits
	w.settle()
	crewWorld{w}.checkLastWake()
	channelWorld{w}.checkLastMessages()
	crewWorld{w}.checkLastSleep()
	crewWorld{w}.readTranscripts()
	w.mu.Lock()
	before := slices.Clone(w.started)
	w.mu.Unlock()
	for _, agent := range agents {
		if w.failed() {
			return
		}
		w.command(agent, agentstate.RunOnce)
		w.settle()
	}
	w.settleLong("each agent ran once")
	w.mu.Lock()
	ran := w.started[len(before):]
	for _, agent := range agents {
		n := 0
		for _, id := range ran {
			if agentIn(id) == agent && !readsPrompts(w.sessions[id].kind) {
				n++
			}
		}
		if w.failure == nil {
			checks{w}.check(onceIsOnce, n == 1 || agent == outsider, "%s has the desired state run_once, and was started %d times", agent,
				n)
		}
	}
	w.mu.Unlock()
	w.stopEngine()
	if (fileWorld{w}).hasUnreported() { // an engine crashed after the last one had read the folder; the next engine finds the replaced file
		w.do(Act{Do: "start"})
		w.checkSettled()
		w.stopEngine()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == nil {
		checks{w}.checkForeignStored()
		channelWorld{w}.checkMessagesStored()
		crewWorld{w}.checkReportsStored()
		documentWorld{w}.checkDocuments()
	}
}

// checkOvertaken gives every overtaken engine a command. The engine must refuse it and stop. An
// overtaken engine that is idle does no harm and cannot notice that it was overtaken.
func (w *world) checkOvertaken() {
	w.settle()
	for !w.failed() {
		l := w.overtaken()
		if l == nil {
			return
		}
		w.goroutines.Go(func() {
			seq, err := l.engine.Agents.Command(context.Background(), byPerson, agents[0], agentstate.Pause, "check for an overtaken engine")
			w.mu.Lock()
			defer w.mu.Unlock()
			checks{w}.check(fenceHolds, err != nil, "engine %d was overtaken and accepted a command with change %d", l.n, seq)
		})
		w.settle()
		w.pass(time.Second)
		w.settle()
		w.mu.Lock()
		checks{w}.check(fenceHolds, l.dead, "engine %d was overtaken, received a command and did not stop", l.n)
		w.mu.Unlock()
	}
}

// overtaken returns the oldest running engine if a newer one was opened after it; otherwise nil.
func (w *world) overtaken() *engineRun {
	w.mu.Lock()
	defer w.mu.Unlock()
	oldest := slices.IndexFunc(w.engines, func(l *engineRun) bool { return !l.dead })
	if oldest < 0 {
		return nil
	}
	l := w.engines[oldest]
	another := slices.ContainsFunc(w.engines[oldest+1:], func(l *engineRun) bool { return !l.dead })
	if another || l.epoch != 0 && l.epoch != w.truth.Epoch {
		return l
	}
	return nil
}

// oneEngine settles until exactly one engine runs. It opens one if none runs.
func (w *world) oneEngine() {
	for range 3 {
		if w.failed() {
			return
		}
		if w.alive() == nil {
			w.do(Act{Do: "start"})
		}
		w.checkSettled()
	}
	n := w.living()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == nil {
		checks{w}.check(fenceHolds, n == 1, "%d engines run, want 1", n)
	}
}

// settleLong lets ten minutes pass, ends hanging sessions, and checks that every agent is paused.
func (w *world) settleLong(after string) {
	for range 20 {
		if w.failed() {
			return
		}
		w.pass(30 * time.Second)
		w.settle()
		w.killSession(Act{Do: "kill", Target: "flaky"}) // its program may hang forever
		w.settle()
	}
	w.checkSettled()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != nil {
		return
	}
	for _, name := range agents {
		a := w.truth.Agents[name]
		is := a.Control.File(false)
		checks{w}.check(desiredObeyed, is.Desired == agentstate.Pause && is.Current == agentstate.Pause && a.Session == nil,
			"%s, but %s is %s/%s, session %v", after, name, is.Desired, is.Current, a.Session)
	}
	checks{w}.check(noStrays, len(w.running()) == 0, "%s, but these sessions run: %v", after, w.running())
}
