package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessionhost"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/files/exchange"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// fakeObserver observes the simulated world and changes nothing.
type fakeObserver struct{ b *bubble }

func (y fakeObserver) Session(_ context.Context, id string, epoch uint64) (sessionhost.Found, int, error) {
	h := y.b.host
	if err := h.adopts.ask(id); err != nil {
		return "", 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if epoch < h.fence {
		return "", 0, &sessionhost.Fenced{Why: "the epoch was overtaken"}
	}
	s := h.sessions[id]
	switch {
	case s == nil:
		return sessionhost.NeverStarted, 0, nil
	case !s.isOver():
		return sessionhost.Running, (&fakeProc{fakeSession: s}).PID(), nil
	case s.ending.Lost:
		return sessionhost.Lost, 0, nil
	}
	return sessionhost.Exited, 0, nil
}

func (y fakeObserver) Orphans(context.Context, func(string) bool) ([]sessionhost.Orphan, error) {
	return nil, nil
}

func (y fakeObserver) File(_ context.Context, agent, _ string) ([]agentstate.Seen, error) {
	text := y.b.disk.text(agent)
	if text == nil {
		return []agentstate.Seen{{Kind: exchange.KindDeleted}}, nil
	}
	s := agentstate.Seen{Kind: exchange.KindWritten, Bytes: text, Sum: file.SumOf(text)}
	var err error
	if s.State, err = agentstate.Parse(text); err != nil {
		s.Kind, s.Fault, s.KeptAs = exchange.KindMalformed, err.Error(), "kept"
	}
	return []agentstate.Seen{s}, nil
}

// dryRun plans the next start and checks that planning changed nothing.
func (b *bubble) dryRun() view.Plan {
	b.t.Helper()
	world := func() string {
		b.host.mu.Lock()
		defer b.host.mu.Unlock()
		b.disk.mu.Lock()
		defer b.disk.mu.Unlock()
		seq, hash, err := b.slate.Again().Head(b.t.Context())
		return fmt.Sprint(seq, hash, err, b.host.fence, b.host.order, b.disk.files)
	}
	was, conf := world(), *b.conf
	plan, err := DryRun(b.t.Context(), outside.Options{
		Name: "test", Config: &conf, Journal: b.slate.Again(), Drivers: map[string]driver.Driver{"fake": b.driver},
		BootID: b.boot, Log: slog.New(slog.DiscardHandler),
	}, fakeObserver{b})
	if err != nil {
		b.t.Fatal(err)
	}
	if now := world(); now != was {
		b.t.Errorf("the dry run changed the journal:\n%s\n%s", was, now)
	}
	return plan
}

// die ends the daemon as SIGKILL does: nothing that it still tries has an effect.
func (b *bubble) die() {
	b.crashPoint.mu.Lock()
	if !b.crashPoint.isDead() {
		close(b.crashPoint.dead)
	}
	b.crashPoint.mu.Unlock()
	b.driver.check.set(nil)
	b.discardEngine()
}

// dieAtNextAct ends the daemon right after its next act, which takes effect.
func (b *bubble) dieAtNextAct() {
	b.crashPoint.mu.Lock()
	defer b.crashPoint.mu.Unlock()
	b.crashPoint.last = len(b.crashPoint.acts) + 1
}

// sessionEnds are the possible outcomes of a session while no daemon runs.
var sessionEnds = map[string]func(b *bubble){
	"running": func(*bubble) {},
	"exited":  func(b *bubble) { b.each(func(s *fakeSession) { s.exit(0) }) },
	"failed":  func(b *bubble) { b.each(func(s *fakeSession) { s.exit(3) }) },
	"lost": func(b *bubble) {
		b.each(func(s *fakeSession) { s.finish(session.Exit{Lost: true, Why: "its shim was killed"}) })
	},
	"vanished": func(b *bubble) {
		b.each(func(s *fakeSession) { s.tell(); s.exit(0) })
		b.host.mu.Lock()
		clear(b.host.sessions)
		b.host.mu.Unlock()
	},
	"silent": func(b *bubble) {
		b.host.adopts.set(func(string) error { return fmt.Errorf("no answer") })
	},
	"never": func(*bubble) {}, // the session is opened, and the daemon crashes before the start
	"none":  func(*bubble) {}, // no session is open
}

func (b *bubble) each(do func(s *fakeSession)) {
	b.host.mu.Lock()
	defer b.host.mu.Unlock()
	for _, s := range b.host.sessions {
		do(s)
	}
}

// situation is a desired state with further conditions: alive runs while the daemon runs, down
// while no daemon runs.
type situation struct {
	first  string // the first desired state
	alive  func(b *bubble)
	down   func(b *bubble)
	paused bool // a person's pause applies: nothing may start
}

func wishes(word string) func(b *bubble) {
	return func(b *bubble) {
		if _, err := b.engine.Agents.Command(b.t.Context(), human, "coder", word, "another one"); err != nil {
			b.t.Fatal(err)
		}
	}
}

func writes(word string) func(b *bubble) {
	return func(b *bubble) { b.disk.writeDesired("coder", word, "by file", time.Now().Add(time.Second)) }
}

var turnSituations = map[string]situation{
	"continuous":        {first: "continuous"},
	"once":              {first: "run_once"},
	"cleanup":           {first: "run_cleanup"},
	"pause since":       {first: "continuous", alive: wishes("pause"), paused: true},
	"pause over once":   {first: "run_once", alive: wishes("pause"), paused: true},
	"once since":        {first: "continuous", alive: wishes("run_once")},
	"once again":        {first: "run_once", alive: wishes("run_once")},
	"file: pause":       {first: "continuous", down: writes("pause"), paused: true},
	"file: pause, once": {first: "run_once", down: writes("pause"), paused: true},
	"file: once":        {first: "continuous", down: writes("run_once")},
	"file: continuous":  {first: "run_once", down: writes("continuous")},
	"file: cleanup":     {first: "run_once", down: writes("run_cleanup")},
	"file: no word":     {first: "continuous", down: writes("jump"), paused: true},
	"file: deleted":     {first: "continuous", down: func(b *bubble) { b.disk.put("coder", nil) }, paused: true},
	"file: broken":      {first: "continuous", down: func(b *bubble) { b.disk.put("coder", []byte("{")) }, paused: true},
	"file: torn by a reboot": {first: "continuous", down: func(b *bubble) {
		b.boot = "boot-2"
		b.disk.put("coder", []byte("{"))
	}},
	"held":             {first: "continuous", alive: func(b *bubble) { b.hold() }, paused: true},
	"held, file: once": {first: "continuous", alive: func(b *bubble) { b.hold() }, down: writes("run_once"), paused: true},
	"stopping": {first: "continuous", alive: func(b *bubble) {
		if err := b.engine.Agents.Stop(b.t.Context(), human, false); err != nil {
			b.t.Fatal(err)
		}
	}},
	"ending": {first: "continuous", alive: func(b *bubble) {
		b.host.ends.set(func(string) error { return fmt.Errorf("not now") })
		if err := b.engine.Agents.Stop(b.t.Context(), human, true); err != nil {
			b.t.Fatal(err)
		}
	}, down: func(b *bubble) { b.host.ends.set(nil) }},
	"removed":      {first: "continuous", down: func(b *bubble) { b.conf.Agents = nil }, paused: true},
	"removed once": {first: "run_once", down: func(b *bubble) { b.conf.Agents = nil }, paused: true},
	"over limit": {
		first: "continuous", alive: uses, down: func(b *bubble) { b.agent("coder").Limits.CostPerDayUSD = 0.1 },
		paused: true,
	},
	"over limit, once": {
		first: "run_once", alive: uses, down: func(b *bubble) { b.agent("coder").Limits.CostPerDayUSD = 0.1 },
		paused: true,
	},
	"too long": {first: "continuous", down: func(b *bubble) {
		b.agent("coder").Limits.Session = time.Minute
		wait.Elapse(time.Hour)
	}},
	"made foreign": {first: "continuous", down: func(b *bubble) { b.agent("coder").Loop = config.LoopForeign }, paused: true},
	"made foreign with a program": {first: "continuous", down: func(b *bubble) {
		b.agent("coder").Loop = config.LoopForeign
		b.agent("coder").Command = []string{"loop"}
	}},
}

func (b *bubble) hold() {
	if _, err := b.engine.Agents.Hold(b.t.Context(), human, true, "lunch"); err != nil {
		b.t.Fatal(err)
	}
}

// uses makes the session report usage, and waits until that is in the journal.
func uses(b *bubble) {
	b.each(func(s *fakeSession) { s.say("usage 10 5 0.5") })
	b.after(time.Second)
}

// TestPlanIsWhatHappens checks that the plan equals the actions of the start in every situation.
func TestPlanIsWhatHappens(t *testing.T) {
	t.Parallel()
	for fate := range sessionEnds {
		for name, situation := range turnSituations {
			t.Run(fate+"/"+name, func(t *testing.T) {
				inBubble(t, "coder", func(t *testing.T, b *bubble) { playPlan(t, b, fate, name, situation) })
			})
		}
	}
}

func playPlan(t *testing.T, b *bubble, fate, name string, situation situation) {
	playUntilCrash(b, fate, situation)
	sessionEnds[fate](b)
	if situation.down != nil {
		situation.down(b)
	}
	head, starts := len(b.history()), len(b.host.order)
	plan := b.dryRun()

	var planned *view.Plan
	b.open(0, false)
	b.engine.opts.Planned = func(p view.Plan) { planned = &p }
	b.run()
	b.settle()
	wait.Elapse(100 * time.Millisecond) // for reads that are waited for
	b.settle()
	if planned == nil {
		t.Fatal("the start did not report its plan")
	}
	for i := range plan.Lines {
		if diff := cmp.Diff(plan.Lines[i].Steps, planned.Lines[i].Steps); diff != "" {
			t.Errorf("the plan of the start differs from its dry run:\n%s", diff)
		}
	}
	done := startResultOf(b, head, starts)
	for _, line := range planned.Lines {
		t.Log(line)
		compareResult(t, b, fate, line, done)
	}
	if unused := fate == "never" || fate == "none"; strings.HasPrefix(name, "over limit") && unused {
		return // the session never ran and used nothing
	}
	if situation.paused && len(done.started) > 0 {
		t.Errorf("%v was started although pause applies", done.started)
	}
	if situation.paused && strings.Contains(fmt.Sprint(planned.Lines), " start ") {
		t.Errorf("a start is planned although pause applies: %v", planned.Lines)
	}
}

// playUntilCrash brings the team to the moment of the crash.
func playUntilCrash(b *bubble, fate string, situation situation) {
	b.start()
	release := make(chan struct{})
	if fate == "never" {
		b.driver.check.set(func(string) error { <-release; return nil })
	}
	if fate == "none" {
		b.host.play = func(*fakeSession) {}
		b.hold() // the desired state is set, and no session has started
	}
	wishes(situation.first)(b)
	b.settle()
	if situation.alive != nil {
		situation.alive(b)
		b.settle()
	}
	if fate == "none" {
		b.host.play = nil
	}
	b.crashPoint.mu.Lock()
	close(b.crashPoint.dead)
	b.crashPoint.mu.Unlock()
	close(release)
	b.die()
}

// startResult is what a start has done, according to the journal and the host.
type startResult struct {
	rows    map[string]string // session → its rows
	started []string
}

func startResultOf(b *bubble, head, starts int) startResult {
	done := startResult{rows: map[string]string{}}
	for _, rec := range b.history()[head:] {
		body, _ := team.BodyOf(rec.Data)
		s := change.As[team.Session](body)
		if rec.Machine != "session" || s == nil {
			continue
		}
		done.rows[s.ID] += rec.Row + " "
	}
	b.host.mu.Lock()
	defer b.host.mu.Unlock()
	done.started = slices.Clone(b.host.order[starts:])
	return done
}

// compareResult compares a plan with what was done.
func compareResult(t *testing.T, b *bubble, fate string, line view.PlanLine, done startResult) {
	t.Helper()
	var wanted []string
	ends, asked := false, false
	for _, step := range line.Steps {
		if step.If == ifWell && fate == "failed" || step.If == ifFailed && fate != "failed" {
			continue
		}
		rows := done.rows[step.Session]
		want := map[view.Deed]string{
			view.DoAdopt: "S2 ", view.DoTakeEnd: "S4 ", view.DoCountLost: "S5 ", view.DoWithdraw: "S6 ",
			view.DoStart: "S1 ",
		}[step.Do]
		if !strings.Contains(rows, want) {
			t.Errorf("%s: %s is planned, but the rows of %s are %q", line.Agent, step.Do, step.Session, rows)
		}
		switch step.Do {
		case view.DoStart:
			wanted = append(wanted, step.Session)
		case view.DoEnd:
			ends = true
			if s := b.host.session(step.Session); !asked && (s == nil || !s.endAsked) {
				t.Errorf("%s was not asked to end", step.Session)
			}
		case view.DoAsk:
			asked = true
			if strings.Trim(rows, "S3 ") != "" {
				t.Errorf("the end of %s is unknown, but it has the rows %q", step.Session, rows)
			}
		case view.DoRest, view.DoWait, view.DoLeave:
			if running := b.host.running(); len(running) > 0 {
				t.Errorf("%v runs, but %s is planned", running, step.Do)
			}
		}
	}
	if !ends && !slices.Equal(wanted, done.started) {
		t.Errorf("%v was started, but the plan says %v", done.started, wanted)
	}
}

// TestQuietPlan checks that a team that was stopped in order has nothing to recover.
func TestQuietPlan(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder pm", func(t *testing.T, b *bubble) {
		if plan := b.dryRun(); len(plan.Lines) != 2 || !plan.Lines[0].Quiet() || !plan.Lines[1].Quiet() {
			t.Errorf("before the first start: %v", plan.Lines)
		}
		b.start()
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		for _, line := range b.dryRun().Lines {
			if !line.Quiet() {
				t.Errorf("after a stop: %v", line)
			}
		}
	})
}

var (
	_ outside.Observer = fakeObserver{}
	_ journal.Journal  = (*dryJournal)(nil)
)
