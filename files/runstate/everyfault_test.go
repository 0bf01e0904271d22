package runstate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// faultyParts are parts of a workflow with one kind of fault each. %[1]s begins the ids, so that two parts do not meet.
var faultyParts = []struct{ name, steps, want string }{
	{"step is a text", "  - %[1]s\n", "a step is a mapping with an id"},
	{"id missing", "  - command: [x]\n    metadata: {a: %[1]s}\n", "id: is missing"},
	{"id with a space", "  - id: %[1]s a\n    command: [x]\n", "a name is made of letters"},
	{"id twice", "  - id: %[1]sa\n    command: [x]\n  - id: %[1]sa\n    command: [x]\n", "ids are given once"},
	{"unknown key", "  - id: %[1]sa\n    comand: [x]\n", "command is meant?"},
	{"wrong kind", "  - id: %[1]sa\n    command: x\n", "it takes a list"},
	{"wrong kind in a list", "  - id: %[1]sa\n    command: [x, {y: z}]\n", "it takes a text"},
	{"no action", "  - id: %[1]sa\n", "name an agent, or give a command"},
	{"no prompt", "  - id: %[1]sa\n    agent: x\n", "say what x is to do"},
	{"prompt not found", "  - id: %[1]sa\n    agent: x\n    prompt: %[1]s.md\n", ".md"},
	{"unknown need", "  - id: %[1]sa\n    command: [x]\n    needs: [%[1]snone]\n", "none\""},
	{"own need", "  - id: %[1]sa\n    command: [x]\n    needs: [%[1]sa]\n", "names its own step"},
	{"need twice", "  - id: %[1]sz\n    command: [x]\n  - id: %[1]sa\n    command: [x]\n    needs: [%[1]sz, %[1]sz]\n", "is named twice"},
	{
		"cycle", "  - id: %[1]sa\n    command: [x]\n    needs: [%[1]sb]\n  - id: %[1]sb\n    command: [x]\n    needs: [%[1]sa]\n",
		"each waits for the next",
	},
	{"loop_back_to unknown", "  - id: %[1]sa\n    command: [x]\n    loop_back_to: %[1]snone\n", "none\""},
	{
		"loop_back_to later",
		"  - id: %[1]sa\n    command: [x]\n    loop_back_to: %[1]sb\n  - id: %[1]sb\n    command: [x]\n    needs: [%[1]sa]\n",
		"comes after this step",
	},
	{
		"gates that cross",
		"  - {id: %[1]sg, command: [x], loop_back_to: %[1]st}\n  - {id: %[1]sh, command: [x], loop_back_to: %[1]su}\n  - {id: %[1]st, command: [x], needs: [%[1]sh]}\n  - {id: %[1]su, command: [x], needs: [%[1]sg]}\n", "once a gate has failed",
	},
	{
		"items from later", "  - id: %[1]sa\n    command: [x]\n    loop: {items_from_step: %[1]sb}\n  - id: %[1]sb\n    command: [x]\n",
		"need not be done before",
	},
	{"items from unknown", "  - id: %[1]sa\n    command: [x]\n    loop: {items_from_step: %[1]snone}\n", "none\""},
	{"empty loop", "  - id: %[1]sa\n    command: [x]\n    loop: {}\n", "nothing to go over"},
	{"endless loop", "  - id: %[1]sa\n    command: [x]\n    loop: {until_condition: index > 1}\n", "max_iterations"},
	{"condition", "  - id: %[1]sa\n    command: [x]\n    when: steps.%[1]snone.status == \"x\"\n", "none\""},
	{"condition not parsed", "  - id: %[1]sa\n    command: [x]\n    when: steps.\n", "when"},
	{"ask", "  - id: %[1]sa\n    command: [x]\n    human_in_the_loop: true\n    ask: never\n", "take after or before"},
	{"ask without people", "  - id: %[1]sa\n    command: [x]\n    ask: before\n", "add human_in_the_loop"},
	{"schema", "  - id: %[1]sa\n    command: [x]\n    human_in_the_loop: true\n    input_schema: {type: 7}\n", "input_schema"},
	{"timeout", "  - id: %[1]sa\n    command: [x]\n    timeout: soon\n", "like 90s"},
	{"attempts", "  - id: %[1]sa\n    command: [x]\n    max_attempts: 101\n", "from 1 to 100"},
	{"gate", "  - id: %[1]sa\n    command: [x]\n    gates: ['']\n", "a gate is a name"},
}

// faultTexts reads a workflow and returns its faults.
func faultTexts(t *testing.T, text string) []string {
	t.Helper()
	_, err := ParseWorkflow("flow.yaml", []byte(text), &PromptPlaces{Repo: t.TempDir(), Beside: t.TempDir()})
	var faults *FileFaults
	if err != nil && !errors.As(err, &faults) {
		t.Fatal(err)
	}
	var all []string
	if faults != nil {
		for _, f := range faults.List {
			all = append(all, f.Error())
		}
	}
	return all
}

// TestEveryFaultAtOnce checks that no kind of fault hides another kind, or one more of its own (SPEC: every fault listed
// with file, line and column): the faults of two parts are those of the one and those of the other.
func TestEveryFaultAtOnce(t *testing.T) {
	texts := func(part, id string) string { return fmt.Sprintf(part, id) }
	alone := make([]int, len(faultyParts))
	for i, a := range faultyParts {
		faults := faultTexts(t, "name: flow\nsteps:\n"+texts(a.steps, "q"))
		if alone[i] = len(faults); !strings.Contains(strings.Join(faults, "\n"), a.want) {
			t.Errorf("%s: %q", a.name, faults)
		}
	}
	for i, a := range faultyParts {
		for j, b := range faultyParts {
			faults := faultTexts(t, "name: flow\nsteps:\n"+texts(a.steps, "q")+texts(b.steps, "r"))
			if len(faults) != alone[i]+alone[j] {
				t.Errorf("%s and %s: %d faults, and alone they have %d and %d:\n%s", a.name, b.name, len(faults), alone[i], alone[j],
					strings.Join(faults, "\n"))
			}
			if all := strings.Join(faults, "\n"); !strings.Contains(all, a.want) || !strings.Contains(all, b.want) {
				t.Errorf("%s and %s:\n%s", a.name, b.name, all)
			}
		}
	}
}

// TestEveryFaultOfOnePlace checks faults that are in the same field, list or expression.
func TestEveryFaultOfOnePlace(t *testing.T) {
	for name, c := range map[string]struct {
		step string
		want []string
	}{
		"entries of a list":  {"needs: [{a: b}, none, a, other]", []string{"needs[0]", "\"none\"", "names its own step", "\"other\""}},
		"entries of gates":   {"gates: ['', [x], '']", []string{"gates[0]", "gates[1]", "gates[2]"}},
		"ask without people": {"ask: never", []string{"take after or before", "add human_in_the_loop"}},
		"names in a condition": {
			"when: steps.none.metrics.x > 0 and steps.other.metrics.x > 0 and wrong == 1",
			[]string{"\"none\"", "\"other\"", "\"wrong\" means nothing"},
		},
		"a function and a name": {"when: nope(steps.none.status) == 1", []string{"there is no such function", "\"none\""}},
		"a name and a kind":     {"when: steps.none.attempts > 0 and len(1) > 0", []string{"\"none\"", "len"}},
		"keys of a loop": {
			"loop: {items: [1], items_from_step: none, max_iterations: -1, item_var: a-b, until_condition: wrong}",
			[]string{"take one of them", "\"none\"", "take a number from 0", "a variable is made", "\"wrong\" means nothing"},
		},
		"a loop and its step": {
			"loop: {items_from_step: none}\n    needs: [other]\n    loop_back_to: third",
			[]string{"\"none\"", "\"other\"", "\"third\""},
		},
		"an id":                   {"id: \"" + strings.Repeat("x y", 30) + "\"", []string{"64 at most", "a name is made of"}},
		"two circles of one step": {"needs: [b, c]\n  - id: b\n    command: [x]\n    needs: [a]\n  - id: c\n    command: [x]\n    needs: [a]", []string{"a -> b -> a", "a -> c -> a"}},
		"a wrong command":         {"agent: who\n    prompt: none.md\n    command: make", []string{"it takes a list", "none.md"}},
	} {
		t.Run(name, func(t *testing.T) {
			first := "  - id: a\n    command: [x]\n    "
			switch {
			case strings.HasPrefix(c.step, "id: "):
				first = "  - command: [x]\n    "
			case strings.HasPrefix(c.step, "agent: "):
				first = "  - id: a\n    "
			}
			faults := strings.Join(faultTexts(t, "name: flow\nsteps:\n"+first+c.step+"\n"), "\n")
			for _, want := range c.want {
				if !strings.Contains(faults, want) {
					t.Errorf("%s is missing in\n%s", want, faults)
				}
			}
		})
	}
}
