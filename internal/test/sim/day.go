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

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/machine/control"
)

// Act is one choice of the stagehand. It says all that it needs, so that a day of which
// some acts were taken away is still a day; what cannot be done then is not done.
type Act struct {
	Do   string `json:"do"`
	Whom string `json:"whom,omitempty"` // an agent, a session, or who waits at the gate
	Word string `json:"word,omitempty"`
	MS   int64  `json:"ms,omitempty"`
}

func (a Act) String() string {
	text := strings.TrimSpace(strings.Join([]string{a.Do, a.Whom, a.Word}, " "))
	if a.MS != 0 {
		text += " " + (time.Duration(a.MS) * time.Millisecond).String()
	}
	return strings.Join(strings.Fields(text), " ")
}

// Step is one line of a trace: an act and its result.
type Step struct {
	N    int      `json:"n"`
	AtMS int64    `json:"at_ms"` // of the day's own time
	Act  Act      `json:"act"`
	Came []string `json:"came,omitempty"`
}

// deeds are what can be drawn, with how often: a number is its weight.
var deeds = []struct {
	do     string
	weight int
}{
	{"order", 9},
	{"write", 8},
	{"hold", 1},
	{"release", 2},
	{"scribble", 2},
	{"spoil", 2},
	{"delete", 2},
	{"tear", 3},
	{"vanish", 2},
	{"kill", 2},
	{"twice", 2},
	{"pass", 12},
	{"crash", 2},
	{"stop", 1},
	{"down", 1},
	{"power", 1},
	{"second", 1},
	{"jump", 1},
	{"clock-back", 1},
	{"say", 7},
	{"visit", 5},
	{"grant", 1},
	{"skip", 1},
	{"override", 1},
	{"assign", 1},
	{"remove", 1},
	{"disable", 1},
	{"enable", 1},
	{"leave", 1},
	{"mumble", 1},
	{"calm", 2},
	{"settle", 10},
}

// mix is which deeds and faults a day knows. Not every day has all: some faults hide others.
type mix struct {
	deeds  []string // by weight
	faults []fate
}

func drawMix(rnd *rand.Rand, seed uint64) mix {
	var m mix
	for _, d := range deeds {
		if rnd.IntN(10) < 7 || d.do == "pass" || d.do == "settle" || d.do == "order" {
			m.deeds = append(m.deeds, slices.Repeat([]string{d.do}, d.weight)...)
		}
	}
	for _, f := range []fate{fails, late, dies, diesDone, raced, cannotRun} {
		if rnd.IntN(10) < 5 {
			m.faults = append(m.faults, f)
		}
	}
	for _, d := range askDeeds {
		if asks(seed) {
			m.deeds = append(m.deeds, slices.Repeat([]string{d.do}, d.weight)...)
		}
	}
	for _, d := range crewDeeds {
		if hasLead(seed) && (rnd.IntN(10) < 7 || d.do == "summon" || d.do == "wake") { // as it was: a day without a lead draws nothing here
			m.deeds = append(m.deeds, slices.Repeat([]string{d.do}, d.weight)...)
		}
	}
	return m
}

var (
	words   = []string{control.WordContinuous, control.WordContinuous, control.WordRunOnce, control.WordRunOnce, control.WordRunCleanup, control.WordPause, control.WordPause, control.WordPause, "dance"}
	pauses  = []int64{5, 60, 400, 2_000, 9_000, 30_000, 100_000}
	skews   = []int64{0, 0, 0, 1, -3_000, 40_000, -3_600_000, 30 * 3_600_000}
	tearing = []int64{20, 200, 400, 900, 3_600_000}
)

// draw chooses the next act.
func (w *world) draw(rnd *rand.Rand, m mix) Act {
	one := func(from []int64) int64 { return from[rnd.IntN(len(from))] }
	waiting := w.waiting()
	if n := len(waiting); n > 0 && rnd.IntN(100) < 60 {
		key := waiting[rnd.IntN(n)]
		if len(m.faults) > 0 && rnd.IntN(100) < 12 {
			f := m.faults[rnd.IntN(len(m.faults))]
			if fits(f, key) {
				return Act{Do: string(f), Whom: key, Word: words[rnd.IntN(8)]}.trimmed()
			}
		}
		return Act{Do: string(goOn), Whom: key}
	}
	if w.alive() == nil && rnd.IntN(100) < 60 {
		return Act{Do: "start"}
	}
	a := Act{Do: m.deeds[rnd.IntN(len(m.deeds))], Whom: agents[rnd.IntN(len(agents))], Word: words[rnd.IntN(len(words))]}
	switch a.Do {
	case "write":
		a.MS = one(skews)
	case "pass":
		a.MS = one(pauses)
	case "tear":
		a.MS, a.Word = one(tearing), words[rnd.IntN(8)]
	case "jump":
		a.MS = int64(26 * time.Hour / time.Millisecond)
	case "clock-back":
		a.MS = int64(3 * time.Hour / time.Millisecond)
	}
	return drawReply(rnd, drawRitual(rnd, drawDeed(rnd, a))).trimmed()
}

// trimmed leaves out what the act does not need.
func (a Act) trimmed() Act {
	if _, is := parleys[a.Do]; is {
		return a
	}
	if _, is := rituals[a.Do]; is {
		return a
	}
	switch a.Do {
	case "order", "write", "scribble", "tear", string(raced):
	case "reply", "revoke":
	case "spoil", "delete", "vanish", "kill", "twice", string(goOn), string(fails), string(late), string(dies), string(diesDone), string(cannotRun):
		a.Word = ""
	default:
		a.Whom, a.Word = "", ""
	}
	return a
}

// fits says whether something can befall who waits.
func fits(f fate, key string) bool {
	of := kind(key)
	switch f {
	case raced:
		return of == "write" || of == "inks"
	case cannotRun:
		return of == "start"
	case late:
		return slices.Contains([]string{"append", "start", "write", "inks", "end", "ack"}, of) // what is typed is asked for again until there is an answer: a shim's input has offsets
	case fails, diesDone:
		return of != "look"
	default:
		return true
	}
}

// do does one act, and lets everybody move who can move by it.
func (w *world) do(a Act) {
	if w.tracing {
		w.mu.Lock()
		w.trace = append(w.trace, Step{N: len(w.trace) + 1, AtMS: time.Since(w.began).Milliseconds(), Act: a})
		w.mu.Unlock()
	}
	d := time.Duration(a.MS) * time.Millisecond
	w.pass(time.Millisecond) // no two things are at the same moment
	switch a.Do {
	case string(goOn), string(fails), string(late), string(dies), string(diesDone), string(cannotRun):
		w.let(a.Whom, fate(a.Do))
	case string(raced):
		w.race(a.Whom, a.Word)
	case "start":
		w.startIf(w.alive() == nil)
	case "second":
		w.startIf(w.living() == 1)
	case "order":
		w.command(a.Whom, a.Word)
	case "hold", "release":
		w.hold(a.Do == "hold")
	case "write":
		w.foreignWrite(a.Whom, a.Word, d)
	case "tear":
		w.tear(a.Whom, a.Word, d)
	case "scribble", "spoil", "delete":
		w.spoil(a)
	case "vanish", "kill":
		w.strike(a)
	case "twice":
		w.again(a.Whom)
	case "pass", "jump":
		w.pass(d)
	case "settle":
		w.settle()
	case "calm":
		w.calm()
	case "evening":
		w.evening()
	case "crash":
		if l := w.alive(); l != nil {
			w.die(l)
		}
	case "stop":
		w.goAway()
	case "down":
		w.give("down", "", func(ctx context.Context, l *life) (uint64, error) { return 0, l.engine.Stop(ctx, byPerson, a.MS != 0) })
	case "reply", "revoke", "retry":
		w.reply(a)
	case "power":
		w.power()
	case "clock-back":
		w.mu.Lock()
		w.ahead = d
		w.mu.Unlock()
	default:
		if _, is := parleys[a.Do]; is {
			w.deed(a)
			break
		}
		if _, is := rituals[a.Do]; is {
			w.ritual(a)
			break
		}
		panic("sim: no such act: " + a.Do)
	}
	synctest.Wait()
}

func (w *world) startIf(may bool) {
	if !may {
		return
	}
	if err := w.begin(); err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.broken(replayIsLive, "an engine cannot be opened: %v", err)
	}
}

// race lets a write proceed after another program's write.
func (w *world) race(key, word string) {
	if w.at(key) == nil {
		return
	}
	agent := strings.Fields(key)[1]
	if kind(key) == "inks" {
		w.raceOnPaper(key, agent+".json")
		return
	}
	note := w.note("wish")
	pen := func() { w.put(agent, w.wish(agent, word, note, time.Millisecond).Render(), true, note) }
	w.mu.Lock()
	w.pens[agent] = pen
	w.mu.Unlock()
	w.let(key, raced)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pens[agent] != nil { // ours was refused: then his is a write like any other
		delete(w.pens, agent)
		pen()
		w.written(agent)
	}
}

// spoil writes invalid content, or removes the file.
func (w *world) spoil(a Act) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.files[a.Whom]
	state, whole := f.now.state()
	switch {
	case a.Do == "delete":
		f.now, f.extra = nil, ""
	case a.Do == "spoil":
		w.put(a.Whom, []byte(fmt.Sprintf(`{"desired_state": contin%d`, w.writes)), true, "")
	case whole:
		state.CurrentState = a.Word
		was := *f
		if w.put(a.Whom, state.Render(), true, ""); bytes.Equal(f.now.bytes, was.now.bytes) {
			f.extra = was.extra // the previous content again: it cannot be distinguished, and says nothing new
		}
	}
	w.written(a.Whom)
}

// strike ends the process of an agent: its shim vanishes, or the process is killed.
func (w *world) strike(a Act) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range w.running() {
		if agentIn(id) != a.Whom {
			continue
		}
		s := w.sessions[id]
		if a.Do == "vanish" {
			s.strays = true // until the strays are swept
			w.finish(s, seam.Ending{Lost: true, Why: "its shim vanished"})
			continue
		}
		w.finish(s, seam.Ending{Exit: driver.Exit{Code: -1, Signal: "SIGKILL", At: time.Now()}})
	}
}

// again hands the last look at a file over once more.
func (w *world) again(agent string) {
	l := w.alive()
	if l == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, ok := l.eyes.last[agent]; ok {
		l.eyes.queue = append(l.eyes.queue, last)
		select {
		case l.eyes.wake <- struct{}{}:
		default:
		}
	}
}

// goAway asks the engine to go, as a signal does: agents go on.
func (w *world) goAway() {
	l := w.alive()
	if l == nil {
		return
	}
	l.cancel()
	for range 3 { // a read waits for a write under way
		w.settle()
		w.pass(2 * tornFor)
	}
	w.settle()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check(comesToRest, l.over, "engine %d was told to go, and is still there", l.n)
}

// power cuts the power: engines, agents and shims are gone, unstored changes are lost, and a recent
// write without a sync may leave an empty file.
func (w *world) power() {
	w.mu.Lock()
	lives := slices.Clone(w.lives)
	w.mu.Unlock()
	for _, l := range lives {
		w.die(l)
	}
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.boot++
	for _, s := range w.sessions {
		if !s.isOver() {
			w.finish(s, seam.Ending{Lost: true, Why: "the machine went down"})
		}
		s.strays = false
	}
	for _, f := range w.files {
		if f.now != nil && f.now.foreign && time.Since(f.now.since) < time.Second {
			f.now.bytes, f.now.note, f.extra = nil, "", ""
		}
	}
}

// evening ends every day in the same way: one engine runs undisturbed, the latest desired state must
// apply, and a one-shot must have run once.
func (w *world) evening() {
	w.mu.Lock()
	w.dusk = true
	w.mu.Unlock()
	w.poke()
	w.peace()
	w.hold(false)
	w.calm()
	w.mu.Lock()
	stopping := w.truth.Stopping
	w.mu.Unlock()
	if stopping { // it was asked to: it goes when all is done, and the next one is asked for nothing
		w.do(Act{Do: "stop"})
		w.peace()
	}
	for _, agent := range agents {
		w.foreignWrite(agent, agentfile.Pause, time.Millisecond)
	}
	if w.lead() != "" {
		w.putToSleep()
		w.settle()
	}
	w.rest("good night")
	w.pass(26 * time.Hour) // a new day: what was used up is there again
	w.settle()
	w.crewMorning()
	w.lastWords()
	w.crewNight()
	w.readTranscripts()
	w.mu.Lock()
	before := slices.Clone(w.order)
	w.mu.Unlock()
	for _, agent := range agents {
		if w.failed() {
			return
		}
		w.command(agent, agentfile.RunOnce)
		w.settle()
	}
	w.rest("a last order")
	w.mu.Lock()
	ran := w.order[len(before):]
	for _, agent := range agents {
		n := 0
		for _, id := range ran {
			if agentIn(id) == agent && !talks(w.sessions[id].kind) {
				n++
			}
		}
		if w.failure == nil {
			w.check(onceIsOnce, n == 1 || agent == outsider, "%s was told run_once, and was started %d times", agent, n)
		}
	}
	w.mu.Unlock()
	w.goAway()
	if w.leftOver() { // by an engine that died when the last one had looked already: the next one finds it
		w.do(Act{Do: "start"})
		w.calm()
		w.goAway()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == nil {
		w.checkOwed()
		w.checkWords()
		w.checkMarks()
		w.checkPapers()
	}
}

// poke gives every engine that was overtaken something to do: one that is at rest cannot
// know it, and does no harm.
func (w *world) poke() {
	w.settle()
	for !w.failed() {
		l := w.overtaken()
		if l == nil {
			return
		}
		w.plays.Go(func() {
			seq, err := l.engine.Command(context.Background(), byPerson, agents[0], agentfile.Pause, "are you overtaken")
			w.mu.Lock()
			defer w.mu.Unlock()
			w.check(fenceHolds, err != nil, "engine %d was overtaken, and answered an order with change %d", l.n, seq)
		})
		w.settle()
		w.pass(time.Second)
		w.settle()
		w.mu.Lock()
		w.check(fenceHolds, l.dead, "engine %d was overtaken, was asked for something, and goes on", l.n)
		w.mu.Unlock()
	}
}

// overtaken is the oldest engine that lives and is not the last one that began; nil: there is
// none.
func (w *world) overtaken() *life {
	w.mu.Lock()
	defer w.mu.Unlock()
	oldest := slices.IndexFunc(w.lives, func(l *life) bool { return !l.dead })
	if oldest < 0 {
		return nil
	}
	l := w.lives[oldest]
	another := slices.ContainsFunc(w.lives[oldest+1:], func(l *life) bool { return !l.dead })
	if another || l.epoch != 0 && l.epoch != w.truth.Epoch {
		return l
	}
	return nil
}

// peace leaves exactly one engine alive, started anew where none was, and at rest.
func (w *world) peace() {
	for range 3 {
		if w.failed() {
			return
		}
		if w.alive() == nil {
			w.do(Act{Do: "start"})
		}
		w.calm()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, l := range w.lives {
		if !l.dead {
			n++
		}
	}
	if w.failure == nil {
		w.check(fenceHolds, n == 1, "%d engines live, and nothing was done to them", n)
	}
}

// rest lets ten minutes pass, in which hanging sessions are ended, and checks that everything is at
// rest.
func (w *world) rest(after string) {
	for range 20 {
		if w.failed() {
			return
		}
		w.pass(30 * time.Second)
		w.settle()
		w.strike(Act{Do: "kill", Whom: "flaky"}) // it may hang forever
		w.settle()
	}
	w.calm()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != nil {
		return
	}
	for _, name := range agents {
		a := w.truth.Agents[name]
		is := a.Control.File(false)
		w.check(wishObeyed, is.Desired == agentfile.Pause && is.Current == agentfile.Pause && a.Session == nil,
			"after %s %s is %s/%s, session %v", after, name, is.Desired, is.Current, a.Session)
	}
	w.check(noStrays, len(w.running()) == 0, "after %s there runs %v", after, w.running())
}
