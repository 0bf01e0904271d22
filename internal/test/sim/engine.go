package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/script"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// engineRun is one engine from its start to its end or crash.
type engineRun struct {
	n             int
	engine        *app.App
	files         *stateFiles
	documentFiles *documentFiles
	cancel        context.CancelFunc
	gone          chan struct{} // closed when it crashes or ends
	ran           chan struct{} // closed when Run has returned
	log           *engineLog

	// The world's lock guards these:
	dead   bool
	over   bool  // Run has returned
	err    error // the result of Run
	epoch  uint64
	found  map[string]sessionhost.Found // the results of its adoptions
	read   map[string]*fileVersion      // the version of each state file that it read last
	faults []string                     // the faults that it met; each must be reported
}

func (w *world) openEngine() error {
	w.mu.Lock()
	l := &engineRun{
		n: len(w.engines) + 1, gone: make(chan struct{}), ran: make(chan struct{}), log: &engineLog{},
		found: map[string]sessionhost.Found{}, read: map[string]*fileVersion{},
	}
	l.files, l.documentFiles = newStateFiles(w, l), newDocumentFiles(w, l)
	w.engines = append(w.engines, l)
	conf := w.conf
	ahead, boot := w.clockAhead, w.boot
	w.clockAhead = 0
	w.mu.Unlock()
	e, err := app.Open(context.Background(), outside.Options{
		Name: "sim", Config: &conf, Journal: &engineJournal{Journal: w.journal.Again(), w: w, l: l, clockAhead: ahead}, Files: l.files,
		Documents: documentWorld{w}.documentsFor(l.documentFiles), Host: host{w, l},
		Drivers: map[string]driver.Driver{"script": scriptDriver{}}, Lookup: func(string) (string, bool) { return "", false },
		BootID: fmt.Sprintf("boot-%d", boot), Log: slog.New(slog.NewTextHandler(l.log, nil)),
	})
	if err != nil {
		return err
	}
	l.engine = e
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	w.goroutines.Go(l.files.deliver)
	w.goroutines.Go(func() {
		defer close(l.ran)
		err := w.runGuarded(func() error { return e.Run(ctx) })
		w.mu.Lock()
		defer w.mu.Unlock()
		l.over, l.err = true, err
		if !l.dead {
			w.notef("engine %d has stopped: %v", l.n, err)
			l.dead = true
			if err == nil {
				l.files.dropReported()
			} // After an error the versions stay, although the real files drop those that were reported.
			close(l.gone)
		}
	})
	w.goroutines.Go(func() { w.watch(ctx, l) })
	return nil
}

// runGuarded turns a panic of the engine's loop into a broken promise.
func (w *world) runGuarded(run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			w.mu.Lock()
			defer w.mu.Unlock()
			checks{w}.broken(noPanic, "%v\n%s", p, debug.Stack())
		}
	}()
	return run()
}

// watch follows the changes: each one must arrive once, in order, and only when it is stored.
func (w *world) watch(ctx context.Context, l *engineRun) {
	last := uint64(0)
	for ch, err := range l.engine.Loop.Changes(ctx, 0, "") {
		if err != nil {
			return
		}
		w.mu.Lock()
		checks{w}.check(watchersInOrder, ch.Seq == last+1, "a watcher of engine %d received change %d after %d", l.n, ch.Seq, last)
		checks{w}.check(durableFirst, ch.Seq <= w.head, "a watcher of engine %d received change %d, but %d is the last that is stored", l.n,
			ch.Seq, w.head)
		w.mu.Unlock()
		last = ch.Seq
	}
}

// crash ends an engine as SIGKILL does: nothing that it still tries has an effect.
func (w *world) crash(l *engineRun) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.dead {
		return
	}
	l.dead = true
	w.notef("engine %d has crashed", l.n)
	close(l.gone)
	l.cancel()
}

func (w *world) isDead(l *engineRun) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.dead
}

// alive returns the newest running engine, or nil.
func (w *world) alive() *engineRun {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.engines) - 1; i >= 0; i-- {
		if l := w.engines[i]; !l.dead {
			return l
		}
	}
	return nil
}

func (w *world) living() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, l := range w.engines {
		if !l.dead {
			n++
		}
	}
	return n
}

// engineLog collects the log of an engine.
type engineLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *engineLog) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *engineLog) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// scriptDriver is the script driver; its scripts run in this process.
type scriptDriver struct{ script.Driver }

func (scriptDriver) Check(driver.Agent) error { return nil }

func (scriptDriver) Launch(_ driver.Agent, s driver.Session) (spawn.Launch, error) {
	launch := spawn.Launch{Argv: []string{string(s.Kind)}}
	if readsPrompts(s.Kind) {
		first, err := json.Marshal(speech.Order{Type: speech.OrderStart, Text: s.Prompt})
		if err != nil {
			return spawn.Launch{}, err
		}
		launch.Input, launch.KeepStdin = append(first, '\n'), true
	}
	return launch, nil
}

// readsPrompts reports whether a session of this kind reads prompts one after the other.
func readsPrompts(kind driver.Kind) bool { return kind == driver.Turn || kind == driver.Lead }

// Capabilities says that every agent except noPromptAgent reads prompts, in every session.
func (scriptDriver) Capabilities(a driver.Agent, _ driver.Kind) driver.Capabilities {
	return driver.Capabilities{Input: true, Prompts: a.Name != noPromptAgent, Steers: true, Asks: true}
}

// programOf returns the script of one session, and whether it leaves a process running. The same day and session make
// the same random choices.
func programOf(seed uint64, agent, session string, kind driver.Kind) (p *script.Program, leaves bool) {
	n, err := strconv.Atoi(session[strings.LastIndexByte(session, '-')+1:])
	if err != nil {
		panic("sim: a session without a number: " + session)
	}
	draw := rand.New(rand.NewPCG(seed, uint64(n)<<16|1))
	usage := func(in, out int64, cost float64) script.Step {
		return script.Step{Verb: "usage", Usage: change.Usage{InputTokens: in, OutputTokens: out, CostUSD: cost}}
	}
	sleep := func(from, to time.Duration) script.Step {
		return script.Step{Verb: "sleep", Sleep: from + time.Duration(draw.Int64N(int64(to-from)+1))}
	}
	var steps []script.Step
	switch {
	case kind == driver.Cleanup && agent == "pm":
		steps = []script.Step{usage(2, 1, 0.01), sleep(time.Second, 5*time.Second)}
	case kind == driver.Cleanup: // the other agents have nothing to tidy
	case agent == "coder":
		steps = []script.Step{usage(10, 1, 0.01), sleep(time.Second, 40*time.Second), {Verb: "say", Text: "half of it"}, usage(7, 1, 0.01)}
		if draw.Float64() < 0.5 {
			steps = append(steps, sleep(time.Second, 10*time.Second))
		}
		steps = append(steps, usage(3, 1, 0.01))
	case agent == "pm":
		if leaves = draw.IntN(2) == 0; leaves {
			steps = []script.Step{usage(5, 5, 0.02), sleep(5*time.Second, 90*time.Second), usage(6, 5, 0.02)}
		} else {
			steps = []script.Step{{Verb: "say", Text: "nothing to do"}}
		}
	default:
		steps = flakySteps(draw.IntN(4), usage, sleep)
	}
	return &script.Program{File: "sim.script.yaml", Sessions: []script.Session{{Steps: steps}}, Cleanup: steps}, leaves
}

func flakySteps(choice int, usage func(in, out int64, cost float64) script.Step,
	sleep func(from, to time.Duration) script.Step,
) []script.Step {
	switch choice {
	case 0:
		return []script.Step{
			usage(4, 4, 0.3), sleep(time.Second, 20*time.Second),
			{Verb: "fail", Text: "the network is down", Code: script.CodeFailed},
		}
	case 1:
		return []script.Step{sleep(time.Second, 5*time.Second), usage(8, 4, 0.3), {Verb: "crash"}}
	case 2:
		return []script.Step{usage(9, 4, 0.3), {Verb: "hang", Text: "waits for something that never comes"}}
	}
	return []script.Step{sleep(time.Second, 5*time.Second), usage(1, 4, 0.3)}
}

// teamOf returns the configuration of a day.
func teamOf(folder string) config.Config {
	agent := func(name string) config.Agent {
		return config.Agent{
			Name: name, Driver: "script", Workspace: folder, Loop: config.LoopFairlead,
			FailuresMax: 4, Backoff: config.Backoff{First: backoffFirst, Max: backoffMax}, Grace: grace,
		}
	}
	coder, pm, flaky := agent("coder"), agent("pm"), agent("flaky")
	coder.Limits.Session = sessionMax
	pm.CleanupEvery = 2
	flaky.Limits.CostPerDayUSD = flakyCostMax
	other := agent(outsider)
	other.Loop = config.LoopForeign
	return config.Config{Agents: []config.Agent{coder, pm, flaky, other}}
}
