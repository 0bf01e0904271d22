package channel

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	machine "github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

type rules = machine.Table[State, Event, Act]

// TestPromela checks the table with the model checker spin. The table is exported to Promela. The
// acts, the possible events and the promises are written by hand in testdata/promela/channel.pml.
func TestPromela(t *testing.T) {
	golden.Check(t, "testdata/promela/table.pml", promela(Table))
}

// promela renders a table in Promela: the next state and the acts of each rule.
func promela(table rules) string {
	var b strings.Builder
	b.WriteString("/* The table of turns, written from turn.Table: UPDATE=1 go test ./core/channel */\n\n")
	b.WriteString("mtype:state = { OFFLINE, IDLE, QUEUED, ACTIVE, WAITING };\n\n")
	for i, event := range Table.Events() {
		fmt.Fprintf(&b, "#define e_%s %d\n", event, i+1)
	}
	acts := actsInOrder()
	b.WriteString("\n")
	for i, act := range acts {
		fmt.Fprintf(&b, "#define %s %d\n", strings.ToUpper(string(act)), 1<<i)
	}
	fmt.Fprintf(&b, "#define REFUSED %d\n", 1<<len(acts))
	b.WriteString("\n/* The rule for an event in an agent's state. */\ninline look(a, e) {\n\tif\n")
	for _, state := range []State{Offline, Idle, Queued, Active, Waiting} {
		for _, event := range slices.Sorted(maps.Keys(table[state])) {
			rule := table[state][event]
			names := []string{"0"}
			for _, act := range rule.Do {
				names = append(names, strings.ToUpper(string(act)))
			}
			if len(names) > 1 {
				names = names[1:]
			}
			fmt.Fprintf(&b, "\t:: st[a] == %s && e == e_%s -> to = %s; acts = %s /* %s */\n", state, event, rule.To,
				strings.Join(names, " | "), rule.ID)
		}
	}
	b.WriteString("\t:: else -> acts = REFUSED\n\tfi\n}\n")
	b.WriteString("\n/* The acts of a rule, in the order that every rule keeps. */\ninline act(a) {\n")
	for i, act := range acts {
		end := ";"
		if i == len(acts)-1 {
			end = ""
		}
		fmt.Fprintf(&b, "\tif\n\t:: acts & %s -> %s(a)\n\t:: else\n\tfi%s\n", strings.ToUpper(string(act)), act, end)
	}
	b.WriteString("}\n")
	return b.String()
}

// actsInOrder returns all acts in the order that every rule keeps.
func actsInOrder() []Act {
	before := map[Act]map[Act]bool{}
	for _, of := range Table {
		for _, rule := range of {
			for i, act := range rule.Do {
				if before[act] == nil {
					before[act] = map[Act]bool{}
				}
				for _, first := range rule.Do[:i] {
					before[act][first] = true
				}
			}
		}
	}
	var order []Act
	for len(before) > 0 {
		free := Act("")
		for _, act := range slices.Sorted(maps.Keys(before)) {
			if len(before[act]) == 0 {
				free = act
				break
			}
		}
		if free == "" {
			panic(fmt.Sprintf("channel: the rules do these in more than one order: %v", before))
		}
		order = append(order, free)
		delete(before, free)
		for _, others := range before {
			delete(others, free)
		}
	}
	return order
}

// spun is a model that spin has compiled.
type spun struct {
	t   *testing.T
	dir string
}

// spin compiles the model with a table, or skips the test with a reason.
func spin(t *testing.T, table rules, optimized string, defines ...string) *spun {
	t.Helper()
	for _, program := range []string{"spin", "cc"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is missing: install the Debian packages spin and gcc", program)
			}
			t.Skipf("%s is missing: install the Debian packages spin and gcc to run this test", program)
		}
	}
	s := &spun{t: t, dir: t.TempDir()}
	model, err := os.ReadFile(filepath.Join("testdata", "promela", "channel.pml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"channel.pml": string(model), "table.pml": promela(table)} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.run("spin", append(defines, "-a", "channel.pml")...)
	s.run("cc", optimized, "-w", "-DNOREDUCE", "-o", "pan", "pan.c")
	return s
}

func (s *spun) run(name string, args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), name, args...)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

var figures = regexp.MustCompile(`(?s)depth reached (\d+), errors: (\d+).*?(\d+) states, stored`)

// holds reports whether a promise holds in every order of events.
func (s *spun) holds(promise string) bool {
	s.t.Helper()
	began := time.Now()
	out := s.run("./pan", "-a", "-N", promise, "-m1000000", "-w22")
	found := figures.FindStringSubmatch(out)
	if found == nil || strings.Contains(out, "max search depth too small") || strings.Contains(out, "out of memory") {
		s.t.Fatalf("spin did not finish with %s:\n%s", promise, out)
	}
	s.t.Logf("%s: %s states, %.1f s, errors: %s", promise, found[3], time.Since(began).Seconds(), found[2])
	return found[2] == "0"
}

func (s *spun) must(promise string) {
	s.t.Helper()
	if !s.holds(promise) {
		s.t.Errorf("%s does not hold; the counterexample:\n%s", promise, tail(s.run("./pan", "-r", "-N", promise), 4000))
	}
}

func tail(text string, size int) string { return text[max(0, len(text)-size):] }

// whole reports whether to run spin, which takes half a minute on two cores.
func whole() bool { return os.Getenv("FAIRLEAD_SPIN") != "" }

// TestSpin checks the promises in the model: with two and three agents, with a lead, and with a
// limit of rounds.
func TestSpin(t *testing.T) {
	if testsize.Race {
		t.Skip("the race detector has no effect on spin; run without it (.ci/run spin)")
	}
	if !whole() {
		t.Skip("set FAIRLEAD_SPIN=1 to run spin (.ci/run spin)")
	}
	for _, c := range []struct {
		agents   int
		defines  []string
		promises []string
	}{
		{2, nil, []string{"one_holder", "fenced", "goes_on", "turn_comes", "wait_ends"}},
		{2, []string{"-DLEAD=1"}, []string{"safe", "turn_comes", "turn_comes_to_last", "wait_ends"}},
		{2, []string{"-DROUNDS=2"}, []string{"safe", "turn_comes", "wait_ends"}},
		{3, []string{"-DPATIENCE=1"}, []string{"safe", "turn_comes", "wait_ends"}},
		{3, []string{"-DPATIENCE=1", "-DLEAD=2"}, []string{"safe"}},
	} {
		t.Run(fmt.Sprint(c.agents, " agents ", c.defines), func(t *testing.T) {
			t.Parallel()
			model := spin(t, Table, "-O1", append(c.defines, fmt.Sprint("-DN=", c.agents))...)
			for _, promise := range c.promises {
				model.must(promise)
			}
		})
	}
}

// TestSpinFindsBrokenRows breaks rows one at a time and checks that spin finds each fault.
func TestSpinFindsBrokenRows(t *testing.T) {
	if testsize.Race {
		t.Skip("the race detector has no effect on spin; run without it (.ci/run spin)")
	}
	if !whole() {
		t.Skip("set FAIRLEAD_SPIN=1 to run spin with broken rows")
	}
	for _, m := range []struct {
		what    string
		state   State
		event   Event
		to      State // replaces the row's next state
		without Act
		defines string
		breaks  string
	}{
		{what: "a slow agent keeps the turn", state: Active, event: TimedOut, without: EndTurn, breaks: "one_holder"},
		{what: "a slow agent loses its place", state: Active, event: TimedOut, without: JoinQueue, breaks: "turn_comes"},
		{what: "a displaced agent keeps the turn", state: Active, event: Displaced, to: Active, without: EndTurn, breaks: "one_holder"},
		{what: "an agent speaks after its turn", state: Active, event: Completed, to: Active, breaks: "one_holder"},
		{what: "a dead agent keeps the turn", state: Active, event: Crashed, without: LoseTurn, breaks: "one_holder"},
		{what: "a dead agent stays in the queue", state: Queued, event: Crashed, without: LeaveQueue, breaks: "goes_on"},
		{what: "a turn has no time limit", state: Queued, event: Granted, without: StartTurnTimer, breaks: "turn_comes"},
		{what: "a wait has no time limit", state: Active, event: WaitAsked, without: StartWaitTimer, breaks: "wait_ends"},
		{
			what: "a wait continues after its time limit", state: Waiting, event: WaitTimedOut, to: Waiting, without: EndTurn,
			breaks: "wait_ends",
		},
		{
			what: "the turn stays paused after the answer to the person", state: Waiting, event: AsideAnswered, to: Waiting,
			defines: "-DLEAD=1", breaks: "wait_ends",
		},
		{
			what: "a resting agent does not notice the next message", state: Idle, event: Roused, to: Idle, without: JoinQueue,
			breaks: "goes_on",
		},
		{what: "the number of an ended turn is accepted", defines: "-DNO_FENCE", breaks: "fenced"},
	} {
		t.Run(m.what, func(t *testing.T) {
			t.Parallel()
			table := rules{}
			for state, of := range Table {
				table[state] = maps.Clone(of)
			}
			if m.event != "" {
				rule := table[m.state][m.event]
				if rule.ID == "" {
					t.Fatalf("%s does not accept %s", m.state, m.event)
				}
				rule.Do = slices.DeleteFunc(slices.Clone(rule.Do), func(act Act) bool { return act == m.without })
				if m.to != "" {
					rule.To = m.to
				}
				table[m.state][m.event] = rule
			}
			defines := []string{"-DN=2"}
			if m.defines != "" {
				defines = append(defines, m.defines)
			}
			if spin(t, table, "-O0", defines...).holds(m.breaks) {
				t.Errorf("%s, but spin finds no violation of %s", m.what, m.breaks)
			}
		})
	}
}
