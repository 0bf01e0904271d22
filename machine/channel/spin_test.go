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

	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/machine"
)

type rules = machine.Table[State, Event, Act]

// The second check of the table is by another program: spin walks a model of one channel. The
// table is exported to it; what an act does, what may happen and what is promised are written
// by hand (testdata/promela/channel.pml).
func TestPromela(t *testing.T) {
	golden.Check(t, "testdata/promela/table.pml", promela(Table()))
}

// promela writes a table as spin reads it: what a rule makes of a state, and which acts it does.
func promela(table rules) string {
	var b strings.Builder
	b.WriteString("/* The table of turns, written from turn.Table: UPDATE=1 go test ./machine/channel */\n\n")
	b.WriteString("mtype:state = { OFFLINE, IDLE, QUEUED, ACTIVE, WAITING };\n\n")
	for i, event := range Table().Events() {
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
			fmt.Fprintf(&b, "\t:: st[a] == %s && e == e_%s -> to = %s; acts = %s /* %s */\n", state, event, rule.To, strings.Join(names, " | "), rule.ID)
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

// actsInOrder are all acts, so that whichever two of them stand in a rule stand in this order.
func actsInOrder() []Act {
	before := map[Act]map[Act]bool{}
	for _, of := range Table() {
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
			panic(fmt.Sprintf("turn: the rules do these in more than one order: %v", before))
		}
		order = append(order, free)
		delete(before, free)
		for _, others := range before {
			delete(others, free)
		}
	}
	return order
}

// spun is a model as spin has compiled it.
type spun struct {
	t   *testing.T
	dir string
}

// spin makes a program of the model with a table, or skips the test in words.
func spin(t *testing.T, table rules, optimized string, defines ...string) *spun {
	t.Helper()
	for _, program := range []string{"spin", "cc"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is missing: install the Debian packages spin and gcc", program)
			}
			t.Skipf("%s is not here: install the Debian packages spin and gcc, and this asks spin", program)
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

// holds says whether a promise holds in every order of things.
func (s *spun) holds(promise string) bool {
	s.t.Helper()
	began := time.Now()
	out := s.run("./pan", "-a", "-N", promise, "-m1000000", "-w22")
	found := figures.FindStringSubmatch(out)
	if found == nil || strings.Contains(out, "max search depth too small") || strings.Contains(out, "out of memory") {
		s.t.Fatalf("spin did not come to an end with %s:\n%s", promise, out)
	}
	s.t.Logf("%s: %s states, %.1f s, errors: %s", promise, found[3], time.Since(began).Seconds(), found[2])
	return found[2] == "0"
}

func (s *spun) must(promise string) {
	s.t.Helper()
	if !s.holds(promise) {
		s.t.Errorf("%s does not hold; how it came to that:\n%s", promise, tail(s.run("./pan", "-r", "-N", promise), 4000))
	}
}

func tail(text string, size int) string { return text[max(0, len(text)-size):] }

// whole says whether spin is asked, which takes half a minute on two cores.
func whole() bool { return os.Getenv("FAIRLEAD_SPIN") != "" }

// The promises hold in the model of the table: with two agents and with three, with a lead and with rounds.
func TestSpin(t *testing.T) {
	if testsize.Race {
		t.Skip("spin knows no race detector: ask it without (.ci/run spin)")
	}
	if !whole() {
		t.Skip("FAIRLEAD_SPIN=1 asks spin (.ci/run spin)")
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
			model := spin(t, Table(), "-O1", append(c.defines, fmt.Sprint("-DN=", c.agents))...)
			for _, promise := range c.promises {
				model.must(promise)
			}
		})
	}
}

// A check that cannot fail proves nothing: rows are broken, one at a time, and spin finds it.
func TestSpinFindsBrokenRows(t *testing.T) {
	if testsize.Race {
		t.Skip("spin knows no race detector: ask it without (.ci/run spin)")
	}
	if !whole() {
		t.Skip("FAIRLEAD_SPIN=1 breaks rows and asks spin")
	}
	for _, m := range []struct {
		what    string
		state   State
		event   Event
		to      State // instead of the row's
		without Act
		defines string
		breaks  string
	}{
		{what: "a slow agent keeps the turn", state: Active, event: TimedOut, without: EndTurn, breaks: "one_holder"},
		{what: "a slow agent loses its place", state: Active, event: TimedOut, without: JoinQueue, breaks: "turn_comes"},
		{what: "who is displaced goes on", state: Active, event: Displaced, to: Active, without: EndTurn, breaks: "one_holder"},
		{what: "who is done speaks on", state: Active, event: Completed, to: Active, breaks: "one_holder"},
		{what: "a dead agent keeps the turn", state: Active, event: Crashed, without: LoseTurn, breaks: "one_holder"},
		{what: "a dead agent stays in the queue", state: Queued, event: Crashed, without: LeaveQueue, breaks: "goes_on"},
		{what: "a turn has no time", state: Queued, event: Granted, without: StartTurnTimer, breaks: "turn_comes"},
		{what: "a wait has no time", state: Active, event: WaitAsked, without: StartWaitTimer, breaks: "wait_ends"},
		{what: "the time of a wait is over, and it waits on", state: Waiting, event: WaitTimedOut, to: Waiting, without: EndTurn, breaks: "wait_ends"},
		{what: "the person has an answer, and the turn stands", state: Waiting, event: AsideAnswered, to: Waiting, defines: "-DLEAD=1", breaks: "wait_ends"},
		{what: "who rests does not hear the next message", state: Idle, event: Roused, to: Idle, without: JoinQueue, breaks: "goes_on"},
		{what: "a number that is over counts", defines: "-DNO_FENCE", breaks: "fenced"},
	} {
		t.Run(m.what, func(t *testing.T) {
			t.Parallel()
			table := rules{}
			for state, of := range Table() {
				table[state] = maps.Clone(of)
			}
			if m.event != "" {
				rule := table[m.state][m.event]
				if rule.ID == "" {
					t.Fatalf("%s takes no %s", m.state, m.event)
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
				t.Errorf("%s, and spin finds nothing wrong with %s", m.what, m.breaks)
			}
		})
	}
}
