package workflow

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// edited is a run_state.json in which the status of some steps was edited: a=COMPLETED.
func (s *stage) edited(list []string) StateEdited {
	in := StateEdited{By: "ada", Extra: s.run.Extra, Steps: map[StepID]Progress{}}
	for _, word := range list {
		id, state, _ := strings.Cut(word, "=")
		p := Progress{}
		if _, was, ok := s.run.Find(StepID(id)); ok {
			p = *was
		}
		p.State = State(state)
		in.Steps[StepID(id)] = p
	}
	return in
}

// TestEditRefuses checks what cannot be taken in from an edited run_state.json, beside what can (X3).
func TestEditRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		plan string
		edit func(in *StateEdited, p Progress)
		want string // empty: it is taken in
	}{
		{
			"a status", "plan attempts=1\n  a\nstart\na starts\na ended x",
			func(in *StateEdited, p Progress) { p.State = Completed; in.Steps["a"] = p }, "",
		},
		{
			"no such status", "plan attempts=1\n  a\nstart\na starts\na ended x",
			func(in *StateEdited, p Progress) { p.State = "DONE"; in.Steps["a"] = p }, `status "DONE"; take one of`,
		},
		{
			"running", "plan attempts=1\n  a\nstart\na starts\na ended x",
			func(in *StateEdited, p Progress) { p.State = Running; in.Steps["a"] = p }, "no process and no question of it exists",
		},
		{
			"waiting", "plan attempts=1\n  a\nstart\na starts\na ended x",
			func(in *StateEdited, p Progress) { p.State = Waiting; in.Steps["a"] = p }, "no process and no question of it exists",
		},
		{
			"attempts", "plan attempts=1\n  a\nstart\na starts\na ended x",
			func(in *StateEdited, p Progress) { p.Attempts = 0; in.Steps["a"] = p }, "",
		},
		{
			"too many attempts", "plan attempts=1\n  a\nstart\na starts\na ended x",
			func(in *StateEdited, p Progress) { p.Attempts = 1 << 40; in.Steps["a"] = p }, "too large",
		},
		{
			"fewer than none", "plan attempts=1\n  a\nstart\na starts\na ended x",
			func(in *StateEdited, p Progress) { p.Iteration = -1; in.Steps["a"] = p }, "neither can be negative",
		},
		{
			"a field of another program", "plan attempts=1\n  a\nstart\na starts\na ended x",
			func(in *StateEdited, p Progress) { in.Extra, p.Extra = `{"t":1}`, `{"c":2}`; in.Steps["a"] = p }, "",
		},
		{
			"too many of them", "plan attempts=1\n  a\nstart\na starts\na ended x",
			func(in *StateEdited, _ Progress) { in.Extra = strings.Repeat("x", jsonBytesMax+1) }, "the unknown fields take",
		},
		{
			"no step", "plan attempts=1\n  a\nstart\na starts\na ended x", func(in *StateEdited, p Progress) { in.Steps["z"] = p },
			"z is no step of the workflow",
		},
		{
			"blocked", "plan attempts=1\n  b\n  a back=b\nstart\nb starts\nb ended x\na starts\na ended x",
			func(in *StateEdited, p Progress) { p.BlockedBy = "a"; in.Steps["a"] = p }, "only a gate does",
		},
		{
			"done before its needs", "plan attempts=1\n  b\n  a needs=b\nstart\nb starts\nb ended x",
			func(in *StateEdited, p Progress) { p.State = Completed; in.Steps["a"] = p },
			"it is COMPLETED, but b, which it needs, would be FAILED",
		},
		{
			"done with its needs", "plan attempts=1\n  b\n  a needs=b\nstart\nb starts\nb ended x",
			func(in *StateEdited, p Progress) { p.State = Completed; in.Steps["a"], in.Steps["b"] = p, p }, "",
		},
		{
			"approved by a file", "plan attempts=1 pause\n  a human\nstart\na starts\na ended x",
			func(in *StateEdited, p Progress) { p.State = Completed; in.Steps["a"] = p }, "people have not answered it",
		},
		{
			"asked by a file", "plan attempts=1 pause\n  a human\nstart\na starts\na ended x",
			func(in *StateEdited, p Progress) { p.State = Pending; in.Steps["a"] = p }, "",
		},
		{
			"without people", "plan attempts=1\n  a human\nstart\na starts\na ended x",
			func(in *StateEdited, p Progress) { p.State = Completed; in.Steps["a"] = p }, "",
		},
		{
			"active", "plan attempts=1\n  a\nstart\na starts", func(in *StateEdited, p Progress) { p.State = Completed; in.Steps["a"] = p },
			"a step of it is active",
		},
		{
			"about to start", "plan attempts=1\n  a\nstart", func(in *StateEdited, p Progress) { p.State = Completed; in.Steps["a"] = p },
			"a step of it is active",
		},
		{
			"cancelled, with a process", "plan attempts=1\n  a\nstart\na starts\ncancel",
			func(in *StateEdited, p Progress) { p.State = Completed; in.Steps["a"] = p }, "a step of it is active",
		},
		{
			"cancelled", "plan attempts=1\n  a\nstart\ncancel",
			func(in *StateEdited, p Progress) { p.State = Completed; in.Steps["a"] = p },
			"",
		},
		{
			"paused", "plan attempts=1\n  a\nstart\npause x", func(in *StateEdited, p Progress) { p.State = Completed; in.Steps["a"] = p },
			"a step of it is active",
		},
	} {
		s := &stage{t: t, run: &Run{}}
		for line := range strings.SplitSeq(c.plan, "\n") {
			s.line(line)
		}
		_, p, ok := s.run.Find("a")
		if !ok {
			t.Fatalf("%s:\n%s", c.name, s.out.String())
		}
		in := s.edited(nil)
		c.edit(&in, *p)
		changes, err := decide(t, s.run, in, s.now)
		switch {
		case c.want == "" && (err != nil || len(changes) < 1 || changes[0].Row != "X3"):
			t.Errorf("%s: %v, %v", c.name, changes, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "X3")):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestRandomEdits edits runs at random when nothing of them is active. An edit is refused, or the run can go on to its
// end, and no lease of it is used twice.
func TestRandomEdits(t *testing.T) {
	taken := 0
	for seed := range testsize.Pick[uint64](100, 400, 3000) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := newWorld(t, rand.New(rand.NewPCG(seed, 2)))
			w.foreign = true
			for range 6 {
				for range 60 {
					w.happen(w.rnd.Uint64())
				}
				if w.rnd.IntN(2) == 0 && w.run.Stage != Absent {
					w.finish()
				}
				if w.decide(w.anyEdit()) == nil {
					taken++
				}
				w.check()
			}
			w.finish()
			w.replay()
		})
	}
	if !t.Failed() && taken < 100 {
		t.Errorf("only %d edits were taken in", taken)
	}
}

// anyEdit changes the status, the attempts or the round of some steps.
func (w *world) anyEdit() StateEdited {
	in := StateEdited{By: "ada", Steps: map[StepID]Progress{}}
	for range 1 + w.rnd.IntN(3) {
		i := w.rnd.IntN(len(w.run.Steps))
		p := w.run.Steps[i]
		switch w.rnd.IntN(6) {
		case 0:
			p.Attempts = w.rnd.IntN(4)
		case 1:
			p.Iteration = w.rnd.IntN(4)
		case 2:
			p.BlockedBy = ""
		default:
			p.State = pick([]State{Pending, Pending, Completed, Failed, Skipped, Running}, w.rnd.Uint64())
		}
		in.Steps[w.run.Plan.Steps[i].ID] = p
	}
	return in
}
