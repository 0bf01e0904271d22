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

// life is one engine, from its start to its end or its death.
type life struct {
	n      int
	engine *controller.Supervisor
	eyes   *eyes
	clerk  *clerk // of the documents
	cancel context.CancelFunc
	gone   chan struct{} // closed with its death
	ran    chan struct{} // closed when Run has returned
	log    *logBook

	// Under the world's lock:
	dead   bool
	over   bool  // Run has returned
	err    error // with this
	fenced bool  // it was told that it was overtaken
	epoch  uint64
	found  map[string]seam.Found // what it was told about sessions
	read   map[string]*sheet     // what it read last
	faults []string              // what it met, in words that must be said
}

// begin opens an engine and lets it run.
func (w *world) begin() error {
	w.mu.Lock()
	l := &life{
		n: len(w.lives) + 1, gone: make(chan struct{}), ran: make(chan struct{}), log: &logBook{},
		found: map[string]seam.Found{}, read: map[string]*sheet{},
	}
	l.eyes, l.clerk = newEyes(w, l), newClerk(w, l)
	w.lives = append(w.lives, l)
	conf := w.conf
	ahead, boot := w.ahead, w.boot
	w.ahead = 0
	w.mu.Unlock()
	e, err := controller.Open(context.Background(), seam.Options{
		Name: "sim", Config: &conf, Journal: &ledger{Journal: w.slate.Again(), w: w, l: l, ahead: ahead}, Files: l.eyes, Documents: w.documents(l.clerk), Host: host{w, l},
		Drivers: map[string]driver.Driver{"script": player{}}, Lookup: func(string) (string, bool) { return "", false },
		BootID: fmt.Sprintf("boot-%d", boot), Log: slog.New(slog.NewTextHandler(l.log, nil)),
	})
	if err != nil {
		return err
	}
	l.engine = e
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	w.plays.Go(l.eyes.handOut)
	w.plays.Go(func() {
		defer close(l.ran)
		err := w.guarded(func() error { return e.Run(ctx) })
		w.mu.Lock()
		defer w.mu.Unlock()
		l.over, l.err = true, err
		if !l.dead {
			w.came("engine %d has stopped: %v", l.n, err)
			l.dead = true
			if err == nil {
				l.eyes.letGo()
			} // else kinder than the real files, which let go of what was told and perhaps not stored
			close(l.gone)
		}
	})
	w.plays.Go(func() { w.watch(ctx, l) })
	return nil
}

// guarded makes a panic of the engine's loop a broken promise like any other.
func (w *world) guarded(run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.broken(noPanic, "%v\n%s", p, debug.Stack())
		}
	}()
	return run()
}

// watch follows the changes: each one arrives once, in order, and only if it is stored.
func (w *world) watch(ctx context.Context, l *life) {
	last := uint64(0)
	for ch, err := range l.engine.Changes(ctx, 0, "") {
		if err != nil {
			return
		}
		w.mu.Lock()
		w.check(watchersInOrder, ch.Seq == last+1, "a watcher of engine %d received change %d after %d", l.n, ch.Seq, last)
		w.check(durableFirst, ch.Seq <= w.head, "a watcher of engine %d received change %d, but %d is the last that is stored", l.n, ch.Seq, w.head)
		w.mu.Unlock()
		last = ch.Seq
	}
}

// die is SIGKILL: whatever it still tries has no effect.
func (w *world) die(l *life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.dead {
		return
	}
	l.dead = true
	w.came("engine %d is dead", l.n)
	close(l.gone)
	l.cancel()
}

func (w *world) isDead(l *life) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.dead
}

// alive is the newest engine that lives, or nil.
func (w *world) alive() *life {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.lives) - 1; i >= 0; i-- {
		if l := w.lives[i]; !l.dead {
			return l
		}
	}
	return nil
}

// living counts the engines that live.
func (w *world) living() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, l := range w.lives {
		if !l.dead {
			n++
		}
	}
	return n
}

// logBook keeps what an engine says.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// player is the script driver, whose scripts are played in process.
type player struct{ script.Driver }

func (player) Check(driver.Agent) error { return nil }

func (player) Launch(_ driver.Agent, s driver.Session) (driver.Launch, error) {
	launch := driver.Launch{Argv: []string{string(s.Kind)}}
	if talks(s.Kind) {
		first, err := json.Marshal(script.Order{Type: script.OrderStart, Text: s.Prompt})
		if err != nil {
			return driver.Launch{}, err
		}
		launch.Input, launch.KeepStdin = append(first, '\n'), true
	}
	return launch, nil
}

// talks says whether a session of this kind is told things, one after the other.
func talks(kind driver.Kind) bool { return kind == driver.Turn || kind == driver.Lead }

// Capabilities say that every agent but one reads prompts, in every session.
func (player) Capabilities(a driver.Agent, _ driver.Kind) driver.Capabilities {
	return driver.Capabilities{Input: true, Prompts: a.Name != deaf, Steers: true, Asks: true}
}

// programs are what the agents play. Their lots are drawn from the day's seed. They are read
// when they are needed: other verbs of the program have no use for them.
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
		panic("sim: its own script has faults: " + err.Error())
	}
	return p
}

// team is the configuration of a day.
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
