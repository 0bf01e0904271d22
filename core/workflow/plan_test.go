package workflow

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCheckNamesEveryFault checks that all faults are listed at once, with step and field, so that
// a reader of YAML can add the line (issue: validation before anything starts).
func TestCheckNamesEveryFault(t *testing.T) {
	edit := func(change func(*Step)) Plan {
		plan := Plan{Name: "w", Steps: []Step{work("a"), work("b", "a"), work("c", "b")}}
		change(&plan.Steps[1])
		return plan
	}
	long := strings.Repeat("x", 20_000)
	for want, plan := range map[string]Plan{
		"workflow, name: is missing":                       {Steps: []Step{work("a")}},
		"workflow, name: 20000 bytes, 200 at most":         {Name: long, Steps: []Step{work("a")}},
		"workflow, name: is no UTF-8":                      {Name: "\xff", Steps: []Step{work("a")}},
		"workflow, steps: there is none":                   {Name: "w"},
		"workflow, description: 20000 bytes":               {Name: "w", Description: long, Steps: []Step{work("a")}},
		"step 2, id: is missing":                           edit(func(s *Step) { s.ID = "" }),
		`step a, id: "a" is step 1 already`:                edit(func(s *Step) { s.ID = "a" }),
		`step A, id: "A" differs from "a" only in case`:    edit(func(s *Step) { s.ID = "A" }),
		`step ../b, id: "../b": a name is made of letters`: edit(func(s *Step) { s.ID = "../b" }),
		"id: 20000 bytes, 64 at most":                      edit(func(s *Step) { s.ID = StepID(long) }),
		"step b, agent: is missing":                        edit(func(s *Step) { s.Agent = "" }),
		"step b, prompt: is missing":                       edit(func(s *Step) { s.Prompt = "" }),
		"step b, prompt: 20000 bytes":                      edit(func(s *Step) { s.Prompt = long }),
		"step b, prompt: is not text":                      edit(func(s *Step) { s.Prompt = "a\x00b" }),
		"step b, model: 20000 bytes":                       edit(func(s *Step) { s.Model = long }),
		"step b, metadata: is no JSON":                     edit(func(s *Step) { s.Metadata = "{" }),
		"step b, metadata: 80000 bytes": edit(func(s *Step) {
			s.Metadata = `"` + long + long + long + long[2:] + `"`
		}),
		`step b, needs[1]: no step is called "x"`:           edit(func(s *Step) { s.Needs = append(s.Needs, "x") }),
		"step b, needs[1]: names its own step":              edit(func(s *Step) { s.Needs = append(s.Needs, "b") }),
		`step b, needs[1]: "a" is named twice`:              edit(func(s *Step) { s.Needs = append(s.Needs, "a") }),
		"step b, needs: 10001 steps, 10000 at most":         edit(func(s *Step) { s.Needs = slices.Repeat([]StepID{"a"}, 10_001) }),
		`step b, next_on_success[0]: no step is called "x"`: edit(func(s *Step) { s.NextOnSuccess = []StepID{"x"} }),
		`step b, gates[0]: ""; a gate is a name`:            edit(func(s *Step) { s.Gates = []string{""} }),
		"step b, gates: 65, 64 at most":                     edit(func(s *Step) { s.Gates = slices.Repeat([]string{"x"}, 65) }),
		`step b, loop_back_to: no step is called "x"`:       edit(func(s *Step) { s.LoopBackTo = "x" }),
		"step b, loop_back_to: names its own step":          edit(func(s *Step) { s.LoopBackTo = "b" }),
		`step b, loop_back_to: "c" comes after this step`:   edit(func(s *Step) { s.LoopBackTo = "c" }),
		`step b, ask: "later"; take after or before`:        edit(func(s *Step) { s.Human, s.Ask = true, "later" }),
		"step b, ask: no person is asked":                   edit(func(s *Step) { s.Ask = AskBefore }),
		"step b, input_schema: no person is asked":          edit(func(s *Step) { s.InputSchema = "{}" }),
		"step b, timeout: -1s; take a time":                 edit(func(s *Step) { s.Timeout = -time.Second }),
		"step b, timeout: 1ns; a process takes longer":      edit(func(s *Step) { s.Timeout = 1 }),
		"step b, loop: nothing to go over":                  edit(func(s *Step) { s.Loop = &Loop{} }),
		"step b, loop: items, items_from_step": edit(func(s *Step) {
			s.Loop = &Loop{Items: []string{}, ItemsFromStep: "a"}
		}),
		"step b, loop.max_iterations: is missing": edit(func(s *Step) { s.Loop = &Loop{UntilCondition: "x"} }),
		"step b, loop.max_iterations: -1; take a number": edit(func(s *Step) {
			s.Loop = &Loop{Items: []string{}, MaxIterations: -1}
		}),
		"step b, loop.items: item 0 is no JSON": edit(func(s *Step) { s.Loop = &Loop{Items: []string{"x"}} }),
		"step b, loop.items: 10001 items, 10000 at most": edit(func(s *Step) {
			s.Loop = &Loop{Items: slices.Repeat([]string{"1"}, 10_001)}
		}),
		"step b, loop.items: the items take": edit(func(s *Step) {
			s.Loop = &Loop{Items: slices.Repeat([]string{`"` + long + `"`}, 30)}
		}),
		`step b, loop.items_from_step: no step is called "x"`: edit(func(s *Step) { s.Loop = &Loop{ItemsFromStep: "x"} }),
		`step b, loop.items_from_step: "c" need not be done`:  edit(func(s *Step) { s.Loop = &Loop{ItemsFromStep: "c"} }),
		`step b, loop.item_var: "a-b"; a variable`: edit(func(s *Step) {
			s.Loop = &Loop{Items: []string{}, ItemVar: "a-b"}
		}),
		`step b, loop.index_var: "i" is the item's name`: edit(func(s *Step) {
			s.Loop = &Loop{Items: []string{}, ItemVar: "i", IndexVar: "i"}
		}),
		"step a, needs: a -> b -> a: each waits for the next": {Name: "w", Steps: []Step{work("a", "b"), work("b", "a")}},
		"step b, needs: b -> c -> d -> b: each waits": {
			Name:  "w",
			Steps: []Step{work("a", "b"), work("b", "c"), work("c", "d"), work("d", "b")},
		},
		"step b: 1000068 bytes": edit(func(s *Step) {
			s.Command = slices.Repeat([]string{long[:9997]}, 100)
		}),
		"once a gate has failed each would wait for the next":     crossed(),
		"they wait for 1001 gates, 1000 at most":                  gated(1001),
		"workflow, steps: 36":                                     heavy(60),
		"workflow: more than 1000 faults":                         {Name: "w", Steps: slices.Repeat([]Step{{}}, 2000)},
		"workflow, steps: 100001, 100000 at most; split the work": {Name: "w", Steps: make([]Step, 100_001)},
	} {
		faults := plan.Check()
		if !slices.ContainsFunc(faults, func(f Fault) bool { return strings.Contains(f.Error(), want) }) {
			t.Errorf("no fault contains %q: %v", want, texts(faults))
		}
		if len(faults) > 1 && !strings.Contains(want, "1000 faults") && !strings.Contains(want, "twice") &&
			!strings.Contains(want, "is missing") && len(faults) > 5 {
			t.Errorf("%q: %d faults: %v", want, len(faults), texts(faults))
		}
	}
}

// crossed is a plan with two gates that would each wait for the step that the other one has sent
// back.
func crossed() Plan {
	g1, g2 := work("g1"), work("g2")
	g1.LoopBackTo, g2.LoopBackTo = "t1", "t2"
	return Plan{Name: "w", Steps: []Step{g1, g2, work("t1", "g2"), work("t2", "g1")}}
}

// gated is a plan whose steps wait for n gates.
func gated(n int) Plan {
	plan := chain(n)
	for i := range plan.Steps {
		plan.Steps[i].Gates = []string{fmt.Sprint(i)}
	}
	return plan
}

// heavy is a plan of n steps of 600 KB each.
func heavy(n int) Plan {
	plan := chain(n)
	for i := range plan.Steps {
		plan.Steps[i].Command = []string{strings.Repeat("x", 600_000)}
	}
	return plan
}

func texts(faults []Fault) []string {
	var all []string
	for _, f := range faults[:min(len(faults), 6)] {
		all = append(all, f.Error())
	}
	return all
}

// TestCheckTakesEverything checks that a plan that uses every field has no fault.
func TestCheckTakesEverything(t *testing.T) {
	plan := Plan{Name: "w", Steps: []Step{
		work("a"), work("b", "a"),
		{
			ID: "c.1", Command: []string{"make"}, Needs: []StepID{"b"}, LoopBackTo: "a", Gates: []string{"x"}, When: "b.ok",
			Timeout: time.Hour,
		},
		{ID: "d", Agent: "x", Prompt: "d.md", Needs: []StepID{"b"}, LoopBackTo: "c.1", Human: true, Ask: AskBefore, InputSchema: "{}"},
		{
			ID: "e", Agent: "x", Prompt: "e.md", Needs: []StepID{"d"},
			Loop: &Loop{ItemsFromStep: "a", ItemVar: "i", IndexVar: "n", MaxIterations: 3, UntilCondition: "y"},
		},
	}}
	if faults := plan.Check(); len(faults) > 0 {
		t.Errorf("%v", texts(faults))
	}
	if faults := DefaultOptions(8).Check(); len(faults) > 0 || DefaultOptions(0).SideBySide != 1 {
		t.Errorf("%v", faults)
	}
}

func TestOptionsCheck(t *testing.T) {
	faults := Options{MaxAttempts: 0, MaxIterations: -1, SideBySide: 1000, BackoffFirst: time.Hour}.Check()
	for n, want := range []string{"max-attempts is 0", "max-iterations is -1", "side-by-side is 1000", "back-off from 1h0m0s to 0s"} {
		if n >= len(faults) || !strings.HasPrefix(faults[n], want) {
			t.Errorf("no fault contains %q: %v", want, faults)
		}
	}
}

// TestCheckOfALongChain checks a chain of a hundred thousand steps, which must not need a stack
// that deep, and gates that all lead one step back, which must not search the whole chain for each
// gate.
func TestCheckOfALongChain(t *testing.T) {
	plan := chain(stepsMax)
	for i := 1; i < len(plan.Steps); i++ {
		plan.Steps[i].LoopBackTo = plan.Steps[i-1].ID
	}
	if faults := plan.Check(); len(faults) > 0 {
		t.Errorf("%v", texts(faults))
	}
	plan.Steps[0].Needs = []StepID{plan.Steps[len(plan.Steps)-1].ID}
	if faults := plan.Check(); len(faults) != 1 || !strings.Contains(faults[0].Error(), " -> … -> ") {
		t.Errorf("%v", texts(faults))
	}
}

// W1: a refused plan starts nothing, and a run is started once.
func TestStartRefuses(t *testing.T) {
	for want, in := range map[string]RunAsked{
		"is missing":        {Plan: chain(1), Options: DefaultOptions(1)},
		`"a/b": a name is`:  {ID: "a/b", Plan: chain(1), Options: DefaultOptions(1)},
		"has 1 faults":      {ID: "r", Plan: Plan{Name: "w"}, Options: DefaultOptions(1)},
		"max-attempts is 0": {ID: "r", Plan: chain(1)},
	} {
		if _, err := decide(t, &Run{}, in, Now{At: noon}); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "W1") {
			t.Errorf("%q: %v", want, err)
		}
	}
	r := begun(t, chain(1), DefaultOptions(1))
	if _, err := decide(t, r, RunAsked{ID: "r", Plan: chain(1), Options: DefaultOptions(1)}, Now{At: noon}); err == nil {
		t.Error("a run was started twice")
	}
	if _, err := decide(t, &Run{}, SkipsDue{}, Now{At: noon}); err == nil ||
		!strings.Contains(err.Error(), "takes run_started, run_taken_in") {
		t.Errorf("input for a run that was not started: %v", err)
	}
}

// chain is a plan of n steps; each needs the one before.
func chain(n int) Plan {
	plan := Plan{Name: "chain"}
	for i := range n {
		s := work(StepID(fmt.Sprintf("step%d", i)))
		if i > 0 {
			s.Needs = []StepID{plan.Steps[i-1].ID}
		}
		plan.Steps = append(plan.Steps, s)
	}
	return plan
}

// fan is a plan of n steps between a first and a last one.
func fan(n int) Plan {
	plan := Plan{Name: "fan", Steps: []Step{work("first")}}
	last := work("last")
	for i := range n {
		s := work(StepID(fmt.Sprintf("step%d", i)), "first")
		plan.Steps = append(plan.Steps, s)
		last.Needs = append(last.Needs, s.ID)
	}
	plan.Steps = append(plan.Steps, last)
	return plan
}

// begun returns a run of a plan that has just started.
func begun(t testing.TB, plan Plan, options Options) *Run {
	t.Helper()
	r := &Run{}
	changes, err := decide(t, r, RunAsked{ID: "r", Plan: plan, Options: options, ReportsDir: "/r", ManualInputsDir: "/m"}, Now{At: noon})
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range changes {
		r.Apply(ch)
	}
	return r
}
