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

// What a day's team is given. Short enough that every limit is met on most days.
const (
	backoffFirst = time.Second
	backoffMax   = 20 * time.Second
	grace        = 5 * time.Second
	sessionMax   = 25 * time.Second
	flakyCostMax = 2.0             // USD a day
	calmFor      = 3 * time.Second // every retry of the engine's own has come by then, but a session's
	settleMax    = 500             // acts in one settling; more is a loop without an end
)

var agents = []string{"coder", "flaky", outsider, "pm"}

// world is everything around the engines. It outlives them.
type world struct {
	seed  uint64
	conf  config.Config
	slate *memory.Journal
	plays sync.WaitGroup

	mu       sync.Mutex // everything below
	gate     []*knock
	lives    []*life
	boot     int
	ahead    time.Duration // of the journal's last change, for the next engine
	sessions map[string]*hostSession
	order    []string          // of the starts
	bars     map[string]uint64 // epoch by session: no older engine may start it
	files    map[string]*stateFile
	pens     map[string]func()
	moved    chan struct{} // closed and made anew when a file changes
	writes   int
	notes    int
	faults   int

	// What was stored, and what follows from it:
	truth      *team.Team
	head       uint64
	noted      map[string]bool
	wishOf     map[string]uint64
	openedAt   map[string]time.Time
	oneShots   map[string]int
	counted    map[string]int64
	countedDay map[string]int64
	owed       map[string]owed
	answered   []string

	foreign foreign
	guest   guest // the same in channels
	book    *book
	crew    *crewBook
	folder  *folder       // of the documents
	batch   []team.Change // that is being stored
	night   bool          // it is the evening: everybody behaves
	dusk    bool          // it begins: rate limits end, and no question is withdrawn

	failure *Failure
	began   time.Time
	tracing bool
	trace   []Step
}

func newWorld(seed uint64, folder string, tracing bool) *world {
	w := &world{
		seed: seed, conf: teamOf(folder), slate: memory.New(), boot: 1, tracing: tracing, began: time.Now(),
		sessions: map[string]*hostSession{}, bars: map[string]uint64{}, files: map[string]*stateFile{}, pens: map[string]func(){},
		moved: make(chan struct{}), truth: team.New(nil), noted: map[string]bool{},
		wishOf: map[string]uint64{}, openedAt: map[string]time.Time{}, oneShots: map[string]int{}, counted: map[string]int64{}, countedDay: map[string]int64{},
		owed: map[string]owed{}, guest: guest{did: map[string]bool{}}, book: newBook(), crew: newCrewBook(), folder: newFolder(),
	}
	w.truth.Crew.Render = crewfile.DocumentSum // as the engine has it
	inChannels(&w.conf, seed)
	withLead(&w.conf, seed)
	withQuestions(&w.conf, seed)
	for _, name := range agents {
		w.files[name] = &stateFile{}
	}
	return w
}

func (w *world) index(agent string) int {
	return slices.IndexFunc(w.conf.Agents, func(a config.Agent) bool { return a.Name == agent })
}

func (w *world) now() time.Time { return time.Now().UTC() }

// came notes what a step led to; the caller holds the lock.
func (w *world) came(format string, args ...any) {
	if !w.tracing || len(w.trace) == 0 {
		return
	}
	last := &w.trace[len(w.trace)-1]
	last.Came = append(last.Came, fmt.Sprintf(format, args...))
}

// apart passes between two acts, so that no two timers fire at the same moment: their order would be
// undefined.
const apart = time.Microsecond

// settle lets everything happen that wants to, one after the other.
func (w *world) settle() {
	for range settleMax {
		synctest.Wait()
		keys := w.waiting()
		if len(keys) == 0 || w.failed() {
			return
		}
		w.let(keys[0], goOn)
		wait.Elapse(apart)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken(comesToRest, "after %d acts there is no end to it", settleMax)
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure != nil
}

// pass lets time go on, with all who wait at the gate left waiting.
func (w *world) pass(d time.Duration) {
	wait.Elapse(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tidy()
	w.playForeign()
}

// calm lets everything come to an end, and looks at it.
func (w *world) calm() {
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
			w.broken(comesToRest, "engine %d is not ready, and nothing is to be done", l.n)
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	view, err := l.engine.Team(ctx)
	crew, _ := l.engine.Crew(ctx, true) // the other one says what is wrong
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case l.dead:
	case err != nil:
		w.broken(comesToRest, "engine %d does not answer: %v", l.n, err)
	default:
		w.checkCalm(l, view)
		w.checkCrewCalm(l, crew)
	}
}

// give has a person give an order, and checks the answer when it comes.
func (w *world) give(what, note string, order func(ctx context.Context, l *life) (uint64, error)) {
	l := w.alive()
	if l == nil {
		return
	}
	w.plays.Go(func() {
		seq, err := order(context.Background(), l)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			w.checkAnswered(what, note, seq)
			w.came("%s: answered with %d", what, seq)
			return
		}
		w.came("%s: %v", what, err)
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
	w.give(word+" for "+agent, note, func(ctx context.Context, l *life) (uint64, error) {
		return l.engine.Command(ctx, byPerson, agent, word, note)
	})
}

func (w *world) hold(on bool) {
	w.give(map[bool]string{true: "hold", false: "release"}[on], "", func(ctx context.Context, l *life) (uint64, error) {
		return l.engine.Hold(ctx, byPerson, on, "")
	})
}

// Writes as a foreign Mission Control does: it reads, changes and writes back.
func (w *world) wish(agent, word, note string, skew time.Duration) agentfile.State {
	state, _ := w.files[agent].now.state()
	state.DesiredState, state.SetBy, state.Note = word, agentfile.SetByHuman, note
	state.Timestamp = file.FormatTime(time.Now().Add(skew))
	if state.CurrentState == "" {
		state.CurrentState = agentfile.Pause
	}
	return state
}

// foreignWrite writes a desired state in place at once. Sometimes its writer adds unknown fields.
func (w *world) foreignWrite(agent, word string, skew time.Duration) {
	note := w.note("wish")
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.wish(agent, word, note, skew)
	if w.writes%3 == 0 {
		raw := fmt.Sprintf(`{"kept":[1.50,"<%d>\u00e9",null]}`, w.writes)
		state.Extra = []file.Field{{Name: "theirs", Raw: []byte(raw)}}
	}
	w.put(agent, state.Render(), true, note)
	w.written(agent)
}

// tear begins a write in place: the file holds half of it until the writer continues.
func (w *world) tear(agent, word string, after time.Duration) {
	note := w.note("wish")
	w.mu.Lock()
	defer w.mu.Unlock()
	whole := w.wish(agent, word, note, 0).Render()
	s := w.put(agent, whole[:len(whole)/2], true, "")
	w.written(agent)
	time.AfterFunc(after, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.mend(agent, s, whole, note)
	})
}

// end takes everything down, whatever state it is in.
func (w *world) end() {
	w.mu.Lock()
	lives := slices.Clone(w.lives)
	w.mu.Unlock()
	for _, l := range lives {
		w.die(l)
		if l.cancel != nil {
			l.cancel()
		}
	}
	w.mu.Lock()
	for _, s := range w.sessions {
		s.kill()
	}
	w.mu.Unlock()
	w.plays.Wait()
}
