package sim

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/files/crewdocs"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// StepsDefault is the default number of acts in a day: enough for three or four engines, and few
// enough for a thousand days a second on a few processors.
const StepsDefault = 120

// Failure is a broken promise.
type Failure struct {
	Promise Promise `json:"promise"`
	Why     string  `json:"why"`
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s (%s: %s): %s", f.Promise.Name, f.Promise.From, f.Promise.Says, f.Why)
}

// Result is the result of a day.
type Result struct {
	Seed     uint64   `json:"seed"`
	Acts     []Act    `json:"acts"`              // the acts that the director chose
	Changes  uint64   `json:"changes"`           // changes in the journal at the end
	Starts   int      `json:"starts"`            // number of sessions
	Engines  int      `json:"engines"`           // number of engines
	Failure  *Failure `json:"failure,omitempty"` // nil: every promise held
	Trace    []Step   `json:"trace,omitempty"`   // only if it was requested
	Shortest bool     `json:"shortest,omitempty"`
}

// Day plays one day in its own bubble. The same seed, steps and folder give the same acts. The
// folder must exist. It is the workspace in the agents' configuration, and no file is written to
// it.
func Day(t *testing.T, folder string, seed uint64, steps int, tracing bool) Result {
	rnd := rand.New(rand.NewPCG(seed, 0))
	m, first := drawMix(rnd, seed), opening(seed)
	return play(t, folder, seed, tracing, func(w *world, n int) (Act, bool) {
		switch {
		case n < len(first):
			return first[n], true
		case n >= len(first)+steps:
			return Act{}, false
		}
		return w.draw(rnd, m), true
	})
}

// again plays given acts with the seed of a day.
func again(t *testing.T, folder string, seed uint64, acts []Act, tracing bool) Result {
	return play(t, folder, seed, tracing, func(_ *world, n int) (Act, bool) {
		if n >= len(acts) {
			return Act{}, false
		}
		return acts[n], true
	})
}

func play(t *testing.T, folder string, seed uint64, tracing bool, next func(w *world, n int) (Act, bool)) (r Result) {
	r.Seed = seed
	var w *world
	defer func() { // the bubble panics if a goroutine does not end
		if p := recover(); p != nil {
			r.Failure = &Failure{Promise: becomesIdle, Why: fmt.Sprint(p)}
			if w != nil {
				r.Trace = w.trace
			}
		}
	}()
	synctest.Test(t, func(*testing.T) {
		w = newWorld(seed, folder, tracing)
		defer w.end()
		for n := 0; !w.failed(); n++ {
			act, ok := next(w, n)
			if !ok {
				break
			}
			r.Acts = append(r.Acts, act)
			w.do(act)
		}
		if !w.failed() {
			w.do(Act{Do: "end-of-day"})
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		r.Changes, r.Starts, r.Engines, r.Failure, r.Trace = w.head, len(w.started), len(w.engines), w.failure, w.trace
	})
	return r
}

// shortenMax limits the time to shorten a trace, because a person waits for it.
const shortenMax = 20 * time.Second

// Shorten removes acts from a day as long as the day still breaks the same promise. It returns the
// shortest day found, with its trace. If the day does not fail again, Shorten returns it unchanged,
// with its trace.
func Shorten(t *testing.T, folder string, long Result) Result {
	fails := func(acts []Act) (Result, bool) {
		r := again(t, folder, long.Seed, acts, false)
		return r, r.Failure != nil && r.Failure.Promise == long.Failure.Promise
	}
	best, began := long.Acts, time.Now()
	for part := (len(best) + 1) / 2; part > 0; part /= 2 {
		for at := 0; at < len(best) && time.Since(began) < shortenMax; {
			rest := slices.Concat(best[:at], best[min(at+part, len(best)):])
			if r, still := fails(rest); still {
				best = r.Acts // the promise may be broken earlier now
				continue
			}
			at += part
		}
	}
	r := again(t, folder, long.Seed, best, true)
	if r.Failure == nil || r.Failure.Promise != long.Failure.Promise {
		r = again(t, folder, long.Seed, long.Acts, true)
		r.Failure = long.Failure
		return r
	}
	r.Shortest = true
	return r
}

// The limits of a day's team. They are small, so that most days reach every limit.
const (
	backoffFirst = time.Second
	backoffMax   = 20 * time.Second
	grace        = 5 * time.Second
	sessionMax   = 25 * time.Second
	flakyCostMax = 2.0             // USD a day
	calmFor      = 3 * time.Second // longer than all retry delays of the engine except those of sessions
	settleMax    = 500             // acts in one settling; more means an endless loop
)

var agents = []string{"coder", "flaky", outsider, "pm"}

// world is the simulated environment of the engines. It outlives them.
type world struct {
	seed       uint64
	conf       config.Config
	journal    *memory.Journal
	goroutines sync.WaitGroup

	mu          sync.Mutex // guards the fields below
	gate        []*operation
	engines     []*engineRun
	boot        int
	clockAhead  time.Duration // how far the clock was ahead of the next engine's clock
	sessions    map[string]*hostSession
	started     []string          // session ids in the order of their starts
	fences      map[string]uint64 // session → epoch; an older engine may not start it
	files       map[string]*stateFile
	raceWrites  map[string]func()
	fileChanged chan struct{} // closed and replaced when a file changes
	writes      int
	notes       int
	faults      int

	// The replayed team and the records of the checkers:
	truth        *team.Team
	head         uint64
	noted        map[string]bool
	desiredOf    map[string]uint64
	openedAt     map[string]time.Time
	oneShots     map[string]int
	counted      map[string]int64
	countedDay   map[string]int64
	mustBeStored map[string]storedLater
	acknowledged []string

	foreign        foreign
	outsiderClient outsiderClient // the foreign agent's use of channels
	record         *channelRecord
	crew           *crewRecord
	documents      *documentFolder
	batch          []change.Change // the changes of the append in progress
	wellBehaved    bool            // the agents answer correctly, at the end of the day
	dayEnding      bool            // rate limits end and no question is withdrawn

	failure *Failure
	began   time.Time
	tracing bool
	trace   []Step
}

func newWorld(seed uint64, folder string, tracing bool) *world {
	w := &world{
		seed: seed, conf: teamOf(folder), journal: memory.New(), boot: 1, tracing: tracing, began: time.Now(),
		sessions: map[string]*hostSession{}, fences: map[string]uint64{}, files: map[string]*stateFile{}, raceWrites: map[string]func(){},
		fileChanged: make(chan struct{}), truth: team.New(nil), noted: map[string]bool{},
		desiredOf: map[string]uint64{}, openedAt: map[string]time.Time{}, oneShots: map[string]int{}, counted: map[string]int64{},
		countedDay:   map[string]int64{},
		mustBeStored: map[string]storedLater{}, outsiderClient: outsiderClient{answered: map[string]bool{}}, record: newChannelRecord(),
		crew: newCrewRecord(), documents: newDocumentFolder(),
	}
	w.truth.Crew.Render = crewdocs.DocumentSum // the same function as in the engine
	configureChannels(&w.conf, seed)
	configureLead(&w.conf, seed)
	configureQuestions(&w.conf, seed)
	for _, name := range agents {
		w.files[name] = &stateFile{}
	}
	return w
}

func (w *world) index(agent string) int {
	return slices.IndexFunc(w.conf.Agents, func(a config.Agent) bool { return a.Name == agent })
}

func (w *world) now() time.Time { return time.Now().UTC() }

// notef adds an effect to the trace; the caller holds the lock.
func (w *world) notef(format string, args ...any) {
	if !w.tracing || len(w.trace) == 0 {
		return
	}
	last := &w.trace[len(w.trace)-1]
	last.Effects = append(last.Effects, fmt.Sprintf(format, args...))
}

// actGap passes between two acts, so that two timers never fire at the same moment. Their order
// would be undefined.
const actGap = time.Microsecond

// settle lets all waiting operations proceed one by one, until none waits.
func (w *world) settle() {
	for range settleMax {
		synctest.Wait()
		keys := w.waiting()
		if len(keys) == 0 || w.failed() {
			return
		}
		w.decide(keys[0], proceeds)
		wait.Elapse(actGap)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	checks{w}.broken(becomesIdle, "the engine is still busy after %d operations", settleMax)
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure != nil
}

// pass lets time pass, while the operations at the gate keep waiting.
func (w *world) pass(d time.Duration) {
	wait.Elapse(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	fileWorld{w}.dropOld()
	fileWorld{w}.playForeign()
}

// checkSettled settles the engine and checks its state.
func (w *world) checkSettled() {
	w.settle()
	for range 3 {
		w.pass(calmFor / 3)
		w.settle()
	}
	l := w.alive()
	if l == nil || w.overtaken() != nil || w.failed() {
		return
	}
	select {
	case <-l.engine.Loop.Ready():
	default:
		w.mu.Lock()
		defer w.mu.Unlock()
		if !l.dead {
			checks{w}.broken(becomesIdle, "engine %d is not ready although no operation waits", l.n)
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	view, err := l.engine.Status.Team(ctx)
	crew, _ := l.engine.Crew.Crew(ctx, true) // Team reports the same error
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case l.dead:
	case err != nil:
		checks{w}.broken(becomesIdle, "engine %d does not answer: %v", l.n, err)
	default:
		checks{w}.checkCalm(l, view)
		crewWorld{w}.checkCrewCalm(l, crew)
	}
}

// order has a person give an order in the background, and checks the confirmation.
func (w *world) order(what, note string, order func(ctx context.Context, l *engineRun) (uint64, error)) {
	l := w.alive()
	if l == nil {
		return
	}
	w.goroutines.Go(func() {
		seq, err := order(context.Background(), l)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			checks{w}.checkAnswered(what, note, seq)
			w.notef("%s: confirmed with %d", what, seq)
			return
		}
		w.notef("%s: %v", what, err)
	})
}

func (w *world) note(what string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes++
	return fmt.Sprintf("%s %d", what, w.notes)
}

var byPerson = change.Actor{Kind: "human", ID: "sim"}

func (w *world) command(agent, word string) {
	note := w.note("order")
	w.order(word+" for "+agent, note, func(ctx context.Context, l *engineRun) (uint64, error) {
		return l.engine.Agents.Command(ctx, byPerson, agent, word, note)
	})
}

func (w *world) hold(on bool) {
	w.order(map[bool]string{true: "hold", false: "release"}[on], "", func(ctx context.Context, l *engineRun) (uint64, error) {
		return l.engine.Agents.Hold(ctx, byPerson, on, "")
	})
}

// stateToWrite returns a state file as another program writes it: it reads the file, changes it and
// writes it back.
func (w *world) stateToWrite(agent, word, note string, skew time.Duration) agentstate.State {
	state, _ := w.files[agent].now.state()
	state.DesiredState, state.SetBy, state.Note = word, agentstate.SetByHuman, note
	state.Timestamp = file.FormatTime(time.Now().Add(skew))
	state.CurrentState = cmp.Or(state.CurrentState, agentstate.Pause)
	return state
}

// foreignWrite writes a desired state at once, as another program does. Sometimes it adds unknown
// fields.
func (w *world) foreignWrite(agent, word string, skew time.Duration) {
	note := w.note("desired state")
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.stateToWrite(agent, word, note, skew)
	if w.writes%3 == 0 {
		raw := fmt.Sprintf(`{"kept":[1.50,"<%d>\u00e9",null]}`, w.writes)
		state.Extra = file.Fields{{Name: "theirs", Raw: []byte(raw)}}
	}
	fileWorld{w}.put(agent, state.Render(), true, note)
	fileWorld{w}.written(agent)
}

// beginTornWrite begins a write in place: the file contains half of the content until the writer
// continues.
func (w *world) beginTornWrite(agent, word string, after time.Duration) {
	note := w.note("desired state")
	w.mu.Lock()
	defer w.mu.Unlock()
	whole := w.stateToWrite(agent, word, note, 0).Render()
	s := fileWorld{w}.put(agent, whole[:len(whole)/2], true, "")
	fileWorld{w}.written(agent)
	time.AfterFunc(after, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		fileWorld{w}.completeWrite(agent, s, whole, note)
	})
}

// end stops all engines and sessions.
func (w *world) end() {
	w.mu.Lock()
	lives := slices.Clone(w.engines)
	w.mu.Unlock()
	for _, l := range lives {
		w.crash(l)
		if l.cancel != nil {
			l.cancel()
		}
	}
	w.mu.Lock()
	for _, s := range w.sessions {
		s.kill()
	}
	w.mu.Unlock()
	w.goroutines.Wait()
}
