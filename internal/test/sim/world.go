package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/crewfile"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/journal/memory"
	"github.com/fairlead-dev/fairlead/team"
)

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
	batch          []team.Change // the changes of the append in progress
	wellBehaved    bool          // the agents answer correctly, at the end of the day
	dayEnding      bool          // rate limits end and no question is withdrawn

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
		desiredOf: map[string]uint64{}, openedAt: map[string]time.Time{}, oneShots: map[string]int{}, counted: map[string]int64{}, countedDay: map[string]int64{},
		mustBeStored: map[string]storedLater{}, outsiderClient: outsiderClient{answered: map[string]bool{}}, record: newChannelRecord(), crew: newCrewRecord(), documents: newDocumentFolder(),
	}
	w.truth.Crew.Render = crewfile.DocumentSum // the same function as in the engine
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
	w.broken(becomesIdle, "the engine is still busy after %d operations", settleMax)
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
	w.dropOld()
	w.playForeign()
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
	case <-l.engine.Ready():
	default:
		w.mu.Lock()
		defer w.mu.Unlock()
		if !l.dead {
			w.broken(becomesIdle, "engine %d is not ready although no operation waits", l.n)
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	view, err := l.engine.Team(ctx)
	crew, _ := l.engine.Crew(ctx, true) // Team reports the same error
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case l.dead:
	case err != nil:
		w.broken(becomesIdle, "engine %d does not answer: %v", l.n, err)
	default:
		w.checkCalm(l, view)
		w.checkCrewCalm(l, crew)
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
			w.checkAnswered(what, note, seq)
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

var byPerson = seam.Actor{Kind: "human", ID: "sim"}

func (w *world) command(agent, word string) {
	note := w.note("order")
	w.order(word+" for "+agent, note, func(ctx context.Context, l *engineRun) (uint64, error) {
		return l.engine.Command(ctx, byPerson, agent, word, note)
	})
}

func (w *world) hold(on bool) {
	w.order(map[bool]string{true: "hold", false: "release"}[on], "", func(ctx context.Context, l *engineRun) (uint64, error) {
		return l.engine.Hold(ctx, byPerson, on, "")
	})
}

// stateToWrite returns a state file as another program writes it: it reads the file, changes it and
// writes it back.
func (w *world) stateToWrite(agent, word, note string, skew time.Duration) agentfile.State {
	state, _ := w.files[agent].now.state()
	state.DesiredState, state.SetBy, state.Note = word, agentfile.SetByHuman, note
	state.Timestamp = file.FormatTime(time.Now().Add(skew))
	if state.CurrentState == "" {
		state.CurrentState = agentfile.Pause
	}
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
		state.Extra = []file.Field{{Name: "theirs", Raw: []byte(raw)}}
	}
	w.put(agent, state.Render(), true, note)
	w.written(agent)
}

// beginTornWrite begins a write in place: the file contains half of the content until the writer
// continues.
func (w *world) beginTornWrite(agent, word string, after time.Duration) {
	note := w.note("desired state")
	w.mu.Lock()
	defer w.mu.Unlock()
	whole := w.stateToWrite(agent, word, note, 0).Render()
	s := w.put(agent, whole[:len(whole)/2], true, "")
	w.written(agent)
	time.AfterFunc(after, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.completeWrite(agent, s, whole, note)
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
