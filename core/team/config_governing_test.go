package team

import (
	"testing"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/session"
)

// Which fairlead.yaml is obeyed depends on whether a sandboxed agent that may write it ran since it was last known: rows E4 to E6.
func TestGoverning(t *testing.T) {
	writes, reads := &LaunchRecord{Governs: true}, &LaunchRecord{}
	confirmed := func(sum string, runs uint64) func(*Team) any {
		return func(*Team) any { return ConfigConfirmed{Sum: sum, Runs: runs} }
	}
	exposed := func(*Team) any { return ConfigExposed{Session: "a-1"} }
	seen := func(sum string, runs uint64) func(*Team) any {
		return func(*Team) any { return ConfigSeen{Sum: sum, Runs: runs} }
	}
	runs := func(of *LaunchRecord) func(*Team) any {
		return func(t *Team) any {
			t.Agents["a"].Session = &Session{ID: "a-1", Phase: session.Running, Launch: of}
			return nil
		}
	}
	ended := func(t *Team) any { t.Agents["a"].Session = nil; return nil }
	for _, c := range []struct {
		name  string
		steps []func(*Team) any
		obeys bool // another file without a question
		found string
	}{
		{"nothing is known", nil, true, ""},
		{"a person's edit", []func(*Team) any{confirmed("one", 0)}, true, ""},
		{
			"a person's edit while an agent runs that cannot write it",
			[]func(*Team) any{confirmed("one", 0), runs(reads), seen("two", 0)},
			true, "",
		},
		{"an agent runs that can", []func(*Team) any{confirmed("one", 0), exposed, runs(writes)}, false, ""},
		{"and has changed it", []func(*Team) any{confirmed("one", 0), exposed, runs(writes), seen("two", 1)}, false, "two"},
		{
			"and has ended",
			[]func(*Team) any{confirmed("one", 0), exposed, runs(writes), seen("two", 1), ended, seen("two", 1)},
			false,
			"two",
		},
		{"and has changed it back", []func(*Team) any{confirmed("one", 0), exposed, seen("two", 1), seen("one", 1)}, true, ""},
		{
			"it was seen unchanged while the agent runs",
			[]func(*Team) any{confirmed("one", 0), exposed, runs(writes), seen("one", 1)},
			false,
			"",
		},
		{"it was seen unchanged while one starts", []func(*Team) any{confirmed("one", 0), exposed, runs(nil), seen("one", 1)}, false, ""},
		{
			"it was seen unchanged after the end",
			[]func(*Team) any{confirmed("one", 0), exposed, runs(writes), ended, seen("one", 1)},
			true,
			"",
		},
		{
			"it was read before another session began",
			[]func(*Team) any{confirmed("one", 0), exposed, exposed, ended, seen("one", 1)},
			false,
			"",
		},
		{"a person confirms it", []func(*Team) any{confirmed("one", 0), exposed, seen("two", 1), confirmed("two", 1)}, true, ""},
		{
			"a person confirms it while the agent runs",
			[]func(*Team) any{confirmed("one", 0), exposed, runs(writes), seen("two", 1), confirmed("two", 1)},
			false, "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := New(nil)
			is.Agents["a"] = &Agent{Name: "a"}
			for i, step := range c.steps {
				what := step(is)
				if what == nil {
					continue
				}
				changes, err := is.Decide(Event{Actor: change.Actor{Kind: "human", ID: "ana"}, What: what})
				if err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				for _, ch := range changes {
					is.Apply(ch)
				}
			}
			if got := is.Governing.MayObey("other"); got != c.obeys || is.Governing.Found != c.found {
				t.Errorf("obeys %v, found %q; want %v, %q", got, is.Governing.Found, c.obeys, c.found)
			}
			if sum := is.Governing.Sum; !is.Governing.MayObey(sum) {
				t.Errorf("the confirmed one, %q, is not obeyed", sum)
			}
		})
	}
}
