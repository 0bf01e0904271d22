package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/controller"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/script"
)

// engineRun is one engine from its start to its end or crash.
type engineRun struct {
	n             int
	engine        *controller.Supervisor
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
	found  map[string]seam.Found   // the results of its adoptions
	read   map[string]*fileVersion // the version of each state file that it read last
	faults []string                // the faults that it met; each must be reported
}

func (w *world) openEngine() error {
	w.mu.Lock()
	l := &engineRun{
		n: len(w.engines) + 1, gone: make(chan struct{}), ran: make(chan struct{}), log: &engineLog{},
		found: map[string]seam.Found{}, read: map[string]*fileVersion{},
	}
	l.files, l.documentFiles = newStateFiles(w, l), newDocumentFiles(w, l)
	w.engines = append(w.engines, l)
	conf := w.conf
	ahead, boot := w.clockAhead, w.boot
	w.clockAhead = 0
	w.mu.Unlock()
	e, err := controller.Open(context.Background(), seam.Options{
		Name: "sim", Config: &conf, Journal: &engineJournal{Journal: w.journal.Again(), w: w, l: l, clockAhead: ahead}, Files: l.files, Documents: documentWorld{w}.documentsFor(l.documentFiles), Host: host{w, l},
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
	for ch, err := range l.engine.Changes(ctx, 0, "") {
		if err != nil {
			return
		}
		w.mu.Lock()
		checks{w}.check(watchersInOrder, ch.Seq == last+1, "a watcher of engine %d received change %d after %d", l.n, ch.Seq, last)
		checks{w}.check(durableFirst, ch.Seq <= w.head, "a watcher of engine %d received change %d, but %d is the last that is stored", l.n, ch.Seq, w.head)
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

func (scriptDriver) Launch(_ driver.Agent, s driver.Session) (driver.Launch, error) {
	launch := driver.Launch{Argv: []string{string(s.Kind)}}
	if readsPrompts(s.Kind) {
		first, err := json.Marshal(script.Order{Type: script.OrderStart, Text: s.Prompt})
		if err != nil {
			return driver.Launch{}, err
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

// programs are the scripts of the agents. Their random numbers come from the day's seed. They are
// parsed on first use.
var programs = sync.OnceValue(func() map[string]*script.Program {
	return map[string]*script.Program{
		"coder": parse(`steps:
  - usage: {input_tokens: 10, output_tokens: 1, cost_usd: 0.01}
  - sleep: 1s..40s
  - say: "half of it"
  - usage: {input_tokens: 7, output_tokens: 1, cost_usd: 0.01}
  - {sleep: 1s..10s, chance: 0.5}
  - usage: {input_tokens: 3, output_tokens: 1, cost_usd: 0.01}
`),
		"pm": parse(`order: random
sessions:
  - steps: [{usage: {input_tokens: 5, output_tokens: 5, cost_usd: 0.02}}, {spawn: "sleep 1000", mode: setsid}, {sleep: 5s..90s}, {usage: {input_tokens: 6, output_tokens: 5, cost_usd: 0.02}}]
  - steps: [{say: "nothing to do"}]
cleanup:
  - usage: {input_tokens: 2, output_tokens: 1, cost_usd: 0.01}
  - sleep: 1s..5s
`),
		"flaky": parse(`order: random
sessions:
  - steps: [{usage: {input_tokens: 4, output_tokens: 4, cost_usd: 0.3}}, {sleep: 1s..20s}, {fail: "the network is down"}]
  - steps: [{sleep: 1s..5s}, {usage: {input_tokens: 8, output_tokens: 4, cost_usd: 0.3}}, {crash: SIGSEGV}]
  - steps: [{usage: {input_tokens: 9, output_tokens: 4, cost_usd: 0.3}}, {hang: "waits for something that never comes"}]
  - steps: [{sleep: 1s..5s}, {usage: {input_tokens: 1, output_tokens: 4, cost_usd: 0.3}}]
`),
	}
})

func parse(text string) *script.Program {
	p, err := script.Parse("sim.script.yaml", []byte(text))
	if err != nil {
		panic("sim: invalid script: " + err.Error())
	}
	return p
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
