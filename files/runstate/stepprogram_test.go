package runstate

import (
	"slices"
	"testing"
)

// What starts a step: SPEC's corrections of 2026-11-28, `--wrapper`.
func TestWhatStartsAStep(t *testing.T) {
	for _, c := range []struct {
		name string
		step StepCommand
		want string // the program; empty: it is refused
	}{
		{"a command", StepCommand{Command: []string{"make"}}, "make"},
		{"a wrapper", StepCommand{Wrapper: "/w"}, "/w"},
		{"a wrapper in Python", StepCommand{Wrapper: "/w.py"}, "python3"},
		{"a template", StepCommand{Template: "/t {run_id}"}, "/t"},
		{"a wrapper over a command", StepCommand{Command: []string{"make"}, Wrapper: "/w"}, "/w"},
		{"a wrapper in Python over a command", StepCommand{Command: []string{"make"}, Wrapper: "/w.py"}, "python3"},
		{"a template over a command", StepCommand{Command: []string{"make"}, Template: "/t"}, "/t"},
		{"nothing", StepCommand{}, ""},
	} {
		argv, err := c.step.Argv()
		if (err == nil) != (c.want != "") || err == nil && (argv[0] != c.want || slices.Contains(argv, "make") != (c.want == "make")) {
			t.Errorf("%s: %q, %v; want %q", c.name, argv, err, c.want)
		}
	}
}
