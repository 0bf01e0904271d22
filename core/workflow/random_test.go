package workflow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/google/go-cmp/cmp"
)

// world applies random inputs to a run, and records from them what the run may do.
type world struct {
	t       testing.TB
	rnd     *rand.Rand
	run     *Run
	now     Now
	journal []change.Change
	alive   map[Lease]bool // processes that were started and whose end was not reported
	begun   map[Lease]bool // leases of all processes so far
	loops   map[StepID]int // loop-backs of a gate since its counter was last reset
	backs   int            // loop-backs of all gates
	foreign bool           // it was imported from another program's file
}

// TestRandomOrders applies two hundred random inputs to each of many runs of random plans,
// and checks the invariants after each one. To repeat a run: -run 'RandomOrders/seed=7$'
func TestRandomOrders(t *testing.T) {
	seeds := testsize.Pick[uint64](100, 600, 4000)
	if testsize.Race {
		seeds = 60
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := newWorld(t, rand.New(rand.NewPCG(seed, 0)))
			for range 200 {
				w.happen(w.rnd.Uint64())
			}
			w.replay()
			w.finish()
		})
	}
}

// FuzzOrders applies inputs that the fuzzer chooses.
func FuzzOrders(f *testing.F) {
	f.Add([]byte{0, 0, 0, 5, 0, 5, 0, 0, 0, 5})
	f.Add([]byte{7, 0, 0, 5, 1, 7, 2, 0, 0, 14, 3, 16, 4})
	f.Add([]byte{42, 0, 9, 6, 2, 0, 0, 10, 0, 0, 0, 5, 255, 12, 7})
	f.Fuzz(func(t *testing.T, orders []byte) {
		if len(orders) == 0 || len(orders) > 1000 {
			return
		}
		w := newWorld(t, rand.New(rand.NewPCG(uint64(orders[0]), 1)))
		for i := 1; i+1 < len(orders); i += 2 {
			w.happen(uint64(orders[i]) | uint64(orders[i+1])<<8 | w.rnd.Uint64()<<16)
		}
		w.replay()
		w.finish()
	})
}

func newWorld(t testing.TB, rnd *rand.Rand) *world {
	w := &world{
		t: t, rnd: rnd, run: &Run{}, now: Now{At: noon},
		alive: map[Lease]bool{}, begun: map[Lease]bool{}, loops: map[StepID]int{},
	}
	options := Options{
		MaxAttempts: 1 + rnd.IntN(3), MaxIterations: rnd.IntN(4), SideBySide: 1 + rnd.IntN(4), PauseForHumans: rnd.IntN(3) > 0,
		GateFile: rnd.IntN(2) == 0, BackoffFirst: time.Duration(rnd.IntN(2)) * time.Second,
		BackoffMax: 4 * time.Second,
	}
	plan := anyPlan(rnd)
	if faults := plan.Check(); len(faults) > 0 {
		t.Fatalf("an invalid random plan: %v", faults[0].Error())
	}
	w.decide(RunAsked{ID: "r", Plan: plan, Options: options, ReportsDir: "/r", ManualInputsDir: "/m"})
	return w
}

// anyPlan returns a plan of up to twelve steps that uses all features. A step needs only earlier
// steps, and a gate leads back only to its needs, so that there is no cycle.
func anyPlan(rnd *rand.Rand) Plan {
	plan := Plan{Name: "any"}
	chance := func(n int) bool { return rnd.IntN(n) == 0 }
	for i := range 1 + rnd.IntN(12) {
		s := Step{ID: StepID('a' + rune(i)), Agent: "x", Prompt: "x.md"}
		for j := range i {
			if chance(3) {
				s.Needs = append(s.Needs, StepID('a'+rune(j)))
			}
		}
		if i > 0 && chance(3) {
			s.LoopBackTo = StepID('a' + rune(rnd.IntN(i)))
		}
		if chance(4) {
			s.Human = true
			s.Ask = []Ask{"", AskAfter, AskBefore}[rnd.IntN(3)]
		}
		if chance(5) {
			s.When = "x"
		}
		if chance(5) {
			s.Timeout = time.Duration(1+rnd.IntN(5)) * time.Second
		}
		if chance(5) {
			s.Gates = []string{"x", "y"}[:1+rnd.IntN(2)]
		}
		if chance(4) {
			s.Loop = &Loop{UntilCondition: []string{"", "x"}[rnd.IntN(2)]}
			switch kind := rnd.IntN(4); {
			case kind == 0 && len(s.Needs) > 0:
				s.Loop.ItemsFromStep = s.Needs[0]
			case kind == 1:
				s.Loop.ItemsFromArtifact = "x.json"
			case kind == 2 && s.Loop.UntilCondition != "":
				s.Loop.MaxIterations = 1 + rnd.IntN(3)
			default:
				s.Loop.Items = slices.Repeat([]string{"1"}, rnd.IntN(4))
			}
		}
		plan.Steps = append(plan.Steps, s)
	}
	return plan
}

func pick[T any](list []T, n uint64) T { return list[n%uint64(len(list))] }

// happen applies one random input. The low byte chooses its kind, the rest its details.
func (w *world) happen(n uint64) {
	w.now.At = w.now.At.Add(time.Duration(n>>8%1500) * time.Millisecond)
	how := n >> 8
	switch n & 0xff % 24 {
	case 0, 1, 2, 3:
		w.start(how)
	case 4, 5, 6, 7, 8:
		w.processSpeaks(how)
	case 9, 10:
		w.answer(how, how%8 == 0, how%8 == 1)
	case 11, 12:
		w.prepare(how)
	case 13, 14:
		w.timer(how)
	case 15:
		w.decide(GatesSeen{Open: pick([][]string{nil, {"x"}, {"y", "z"}, {"x", "y"}}, how)})
	case 16:
		if how%3 == 0 {
			w.decide(CancelAsked{By: "ada"})
		} else if how%3 == 1 {
			w.decide(CancelAsked{By: "ada", Step: w.anyStep(how >> 4)})
		}
	case 17:
		w.decide(w.resume(how))
	case 18:
		w.decide(ResumeAsked{By: "ada", From: w.anyStep(how)})
	case 19:
		w.now.Held = how%2 == 0
	case 20:
		w.decide(pick([]Input{PauseAsked{By: "ada"}, ReleaseAsked{By: "ada"}, ReleaseAsked{By: "ada"}}, how))
	case 21:
		w.late(how)
	case 22:
		w.run = restored(w.t, w.run)
	default:
		w.outOfTurn(how)
	}
	w.check()
}

// resume resumes the run, sometimes with an edited plan or other flags.
func (w *world) resume(how uint64) ResumeAsked {
	in := ResumeAsked{By: "ada"}
	if how%4 == 0 {
		plan := anyPlan(w.rnd)
		in.Plan = &plan
	}
	if how>>2%4 == 0 {
		options := w.run.Options
		options.GateFile, options.PauseForHumans = how>>4%2 == 0, how>>5%2 == 0
		in.Options = &options
	}
	if how>>6%2 == 0 {
		in.From = w.anyStep(how >> 8)
	}
	return in
}

func (w *world) anyStep(n uint64) StepID { return pick(w.run.Plan.Steps, n).ID }

// todo returns the n-th pending action of one of these kinds.
func (w *world) todo(n uint64, kinds ...ActionKind) (Action, bool) {
	var all []Action
	for action := range w.run.Actions(w.now) {
		if slices.Contains(kinds, action.Do) {
			all = append(all, action)
		}
	}
	if len(all) == 0 {
		return Action{}, false
	}
	return pick(all, n), true
}

func (w *world) start(how uint64) {
	if action, ok := w.todo(how, StartIt); ok {
		w.must(StartAsked{Step: action.Lease.Step})
	}
}

func (w *world) prepare(how uint64) {
	action, ok := w.todo(how, EvaluateCondition, FindItems, SkipIt)
	step := action.Lease.Step
	switch {
	case !ok:
	case action.Do == SkipIt:
		w.must(SkipsDue{})
	case action.Do == EvaluateCondition:
		v := Verdict{Holds: how>>8%3 > 0}
		if how>>8%8 == 7 {
			v.Fault = "no"
		}
		w.must(WhenWeighed{Step: step, Iteration: action.Iteration, Verdict: v})
	default:
		in := ItemsSeen{Step: step, Iteration: action.Iteration, Items: slices.Repeat([]string{`"i"`}, int(how>>8%4))}
		if how>>8%8 == 7 {
			in.Fault = "no"
		}
		w.must(in)
	}
}

func (w *world) verdict(step StepID, how uint64) *Verdict {
	s, _, _ := w.run.Find(step)
	if s.Loop == nil || s.Loop.UntilCondition == "" {
		return nil
	}
	v := Verdict{Holds: how%4 == 0}
	if how%16 == 5 {
		v.Fault = "no"
	}
	return &v
}

// processSpeaks applies input from a live process, or about it.
func (w *world) processSpeaks(how uint64) {
	action, ok := w.todo(how, RunIt, EndIt)
	if !ok {
		return
	}
	l := action.Lease
	how >>= 8
	kind := how % 16
	if action.Do == EndIt && kind < 8 {
		kind = 8
	}
	switch kind {
	case 0, 1, 2, 3, 4, 5, 6, 7:
		in := ReportRead{Lease: l, Over: how>>4%2 == 0, Until: w.verdict(l.Step, how>>8)}
		in.Report.GateFailed, in.Report.Failed = kind == 6, kind == 7
		in.Report.Artifacts = []string{fmt.Sprint(l.Step, l.N)}
		if how>>20%4 == 0 {
			in.Report.Again = time.Duration(how>>24%5) * time.Second
		}
		w.ends(l, in.Over)
		w.must(in)
	case 8, 9:
		w.ends(l, true)
		w.must(ProcessEnded{Lease: l, Why: "exit status 1"})
	case 10:
		w.ends(l, true)
		if how>>40%2 == 0 {
			w.must(ProviderBusy{Lease: l, Why: "429"})
			break
		}
		w.must(ProcessLost{Lease: l, Why: "boot"})
	case 11:
		w.ends(l, true)
		if action.Do == RunIt {
			w.must(StartWithdrawn{Lease: l, Why: "held"})
		} else {
			w.must(ProcessEnded{Lease: l})
		}
	case 12:
		w.must(ProcessAdopted{Lease: l})
	case 13:
		w.decide(LimitHit{Lease: l, Limit: "tokens"})
	}
}

func (w *world) ends(l Lease, over bool) {
	if over {
		delete(w.alive, l)
	}
}

func (w *world) answer(how uint64, rejected, invalid bool) {
	action, ok := w.todo(how, AskForAnswer)
	if !ok {
		return
	}
	in := AnswerRead{Lease: action.Lease, By: "ada", Rejected: rejected, Until: w.verdict(action.Lease.Step, how>>8), Place: how>>6%2 == 0}
	if invalid {
		in.Fault = "no"
	}
	w.must(in)
}

func (w *world) timer(how uint64) {
	about := w.run.Deadline()
	if about.At.IsZero() {
		return
	}
	if how%4 == 0 {
		about.At = about.At.Add(-time.Millisecond) // a deadline whose subject has changed
	} else if w.now.At.Before(about.At) {
		w.now.At = about.At
	}
	w.decide(TimerFired{About: about})
}

// late applies input under an ended lease, which must be refused without an effect.
func (w *world) late(how uint64) {
	step := w.anyStep(how)
	_, p, _ := w.run.Find(step)
	l := Lease{Step: step, N: how >> 8 % (p.N + 2)}
	if l.N == p.N || l.N == p.Proc {
		return
	}
	for _, in := range []Input{
		ReportRead{Lease: l},
		ProcessEnded{Lease: l},
		ProcessLost{Lease: l},
		ProviderBusy{Lease: l},
		ProcessAdopted{Lease: l},
		StartWithdrawn{Lease: l},
		AnswerRead{Lease: l},
		LimitHit{Lease: l},
	} {
		if _, err := decide(w.t, w.run, in, w.now); err == nil {
			w.t.Fatalf("%T of lease %d was accepted, but %s is at %d", in, l.N, step, p.N)
		}
	}
}

// outOfTurn applies input at the wrong time. Most of it is refused.
func (w *world) outOfTurn(how uint64) {
	step := w.anyStep(how)
	switch how >> 8 % 5 {
	case 0:
		w.decide(StartAsked{Step: step})
	case 1:
		w.decide(WhenWeighed{Step: step, Iteration: int(how >> 16 % 3)})
	case 2:
		w.decide(ItemsSeen{Step: step, Iteration: int(how >> 16 % 3)})
	case 3:
		w.decide(SkipsDue{})
	default:
		w.decide(RunAsked{ID: "r2", Plan: w.run.Plan, Options: w.run.Options})
	}
}

// must applies an input that the run has requested.
func (w *world) must(in Input) {
	w.t.Helper()
	if err := w.decide(in); err != nil {
		w.t.Fatalf("%T was requested but refused: %v", in, err)
	}
}

func (w *world) decide(in Input) error {
	w.t.Helper()
	look := w.rnd.IntN(16) == 0
	var before *Run
	if look {
		before = restored(w.t, w.run)
	}
	changes, err := decide(w.t, w.run, in, w.now)
	if look {
		if diff := same(before, w.run); diff != "" {
			w.t.Fatalf("%T: Decide changed the run:\n%s", in, diff)
		}
	}
	for _, ch := range changes {
		w.judge(ch, in)
		ch = journaled(w.t, ch)
		w.journal = append(w.journal, ch)
		if set := change.As[Body](ch.Body).Step; set != nil && set.Facts != nil && set.Facts.Denied == nil {
			w.t.Fatalf("%s %s: facts of this version without a list of denied calls look like those of an older one", ch.Row, ch.Trigger)
		}
		w.run.Apply(ch)
	}
	return err
}

// replay checks that the journal, decoded without the table, and a snapshot give the same run.
func (w *world) replay() {
	again := &Run{}
	for _, ch := range w.journal {
		again.Apply(ch)
	}
	for name, other := range map[string]*Run{"the journal": again, "a snapshot": restored(w.t, w.run)} {
		if diff := same(w.run, other); diff != "" {
			w.t.Fatalf("%s gives another run:\n%s", name, diff)
		}
		mine, its := slices.Collect(w.run.Actions(w.now)), slices.Collect(other.Actions(w.now))
		if diff := cmp.Diff(mine, its); diff != "" {
			w.t.Fatalf("%s gives other actions:\n%s", name, diff)
		}
		if w.run.Deadline() != other.Deadline() {
			w.t.Fatalf("%s has the deadline %+v, but the run %+v", name, other.Deadline(), w.run.Deadline())
		}
	}
}

// finish does all pending actions successfully. The run must then end.
func (w *world) finish() {
	w.now.Held = false
	for range 2000 {
		w.now.At = w.now.At.Add(time.Second)
		switch w.run.Stage {
		case Paused:
			w.must(ReleaseAsked{By: "ada"})
		case Stopped, Parked:
			w.must(ResumeAsked{By: "ada"})
		}
		w.decide(GatesSeen{Open: []string{"x", "y"}})
		if about := w.run.Deadline(); !about.At.IsZero() && !w.now.At.Before(about.At) {
			w.must(TimerFired{About: about})
		}
		if status := w.run.Status(); status == IsCompleted || status == IsFailed {
			w.check()
			return
		}
		var next []Action
		for action := range w.run.Actions(w.now) {
			next = append(next, action)
		}
		for _, action := range next {
			w.doWell(action)
			w.check()
		}
	}
	w.t.Fatalf("the run does not end: it is %s and waits for %v\n%+v", w.run.Status(), w.run.Waits(), slices.Collect(w.run.Actions(w.now)))
}

// doWell does an action, unless the previous one made it unnecessary.
func (w *world) doWell(action Action) {
	if !slices.ContainsFunc(slices.Collect(w.run.Actions(w.now)), func(now Action) bool { return now.Key == action.Key }) {
		return
	}
	step := action.Lease.Step
	var never *Verdict
	if s, _, ok := w.run.Find(step); ok && s.Loop != nil && s.Loop.UntilCondition != "" {
		never = &Verdict{Holds: true}
	}
	switch action.Do {
	case StartIt:
		w.must(StartAsked{Step: step})
	case RunIt:
		w.ends(action.Lease, true)
		w.must(ReportRead{Lease: action.Lease, Over: true, Until: never})
	case EndIt:
		w.ends(action.Lease, true)
		w.must(ProcessEnded{Lease: action.Lease})
	case AskForAnswer:
		w.must(AnswerRead{Lease: action.Lease, By: "ada", Until: never, Place: true})
	case EvaluateCondition:
		w.must(WhenWeighed{Step: step, Iteration: action.Iteration, Verdict: Verdict{Holds: true}})
	case FindItems:
		w.must(ItemsSeen{Step: step, Iteration: action.Iteration, Items: []string{"1", "2"}})
	case SkipIt:
		w.must(SkipsDue{})
	case FindReport:
		w.must(ProcessLost{Lease: action.Lease, Why: "the process was not found"})
	default:
		w.t.Fatalf("unknown action %+v", action)
	}
}
