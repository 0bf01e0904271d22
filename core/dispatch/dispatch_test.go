package dispatch

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// coverage counts what Decide returned in the tests of this package.
var coverage = machinetest.NewCoverage()

// decide calls Decide, counts the rows of its changes, checks what must hold for every result, and
// applies the changes. All tests of this package use it. A refusal is a normal result.
func decide(t testing.TB, s *Dispatch, at time.Time, in Input) ([]change.Change, error) {
	t.Helper()
	before := encode(t, *s)
	changes, err := s.Decide(at, in)
	if encode(t, *s) != before {
		t.Fatalf("%T: Decide changed the dispatch", in)
	}
	if err != nil {
		if len(changes) > 0 {
			t.Fatalf("%T: a refusal came with changes: %v", in, err)
		}
		if _, ok := err.(*table.Refusal); !ok { //nolint:errorlint // the error is never wrapped
			t.Fatalf("%T: %v is not a refusal", in, err)
		}
		return nil, err
	}
	for _, ch := range changes {
		from := s.Phase
		if from == "" {
			from = None
		}
		body := change.As[Body](ch.Body)
		rule := Table[from][Event(ch.Trigger)]
		if rule.ID != ch.Row || rule.To != body.Now.Phase {
			t.Fatalf("%s in %s is not a row of the table: %+v", ch.Trigger, from, ch)
		}
		if body.Now.Line != s.Line+1 {
			t.Fatalf("%s: line %d after %d", ch.Trigger, body.Now.Line, s.Line)
		}
		coverage.Row(ch.Row)
		coverage.Pair("", string(from), ch.Trigger)
		was := encode(t, ch)
		s.Apply(ch)
		if err := check(s); err != nil {
			t.Fatalf("after %s: %v\n%s", ch.Trigger, err, encode(t, *s))
		}
		if ch.From != "" && s.State() != ch.To {
			t.Fatalf("%s says %s, but the state is %s", ch.Trigger, ch.To, s.State())
		}
		defer func() {
			if encode(t, ch) != was {
				t.Fatalf("a later change modified an earlier one: %s", ch.Trigger)
			}
		}()
	}
	if len(s.Waiting) > 0 && s.Open == nil {
		t.Fatalf("%T: inputs wait but no conversation is open: %s", in, encode(t, *s))
	}
	return changes, nil
}

func encode(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// check checks what must hold for every dispatch.
func check(s *Dispatch) error {
	c := s.Open
	switch s.Phase {
	case None, Ready, Queue, Closed:
		if c != nil {
			return fmt.Errorf("%s, but a conversation is open", s.Phase)
		}
	case Talking, Working, Serving:
		if c == nil {
			return fmt.Errorf("%s, but no conversation is open", s.Phase)
		}
		if (s.Phase == Talking) != (len(c.Tasks) == 0) {
			return fmt.Errorf("%s with %d tasks", s.Phase, len(c.Tasks))
		}
	}
	if (s.Mode == Response) != slices.Contains([]Phase{Queue, Serving}, s.Phase) && s.Phase != Closed && s.Phase != None {
		return fmt.Errorf("%s in mode %s", s.Phase, s.Mode)
	}
	if c == nil {
		return nil
	}
	if c.N != s.Made {
		return fmt.Errorf("conversation %d is open, but only %d were begun", c.N, s.Made)
	}
	for i, task := range c.Tasks {
		if _, ok := c.Task(task.By); task.By != 0 && !ok {
			return fmt.Errorf("task %d was requested by a task that has ended", task.ID)
		}
		if !s.Knows(task.Agent) || !slices.Contains(c.Used, task.Agent) {
			return fmt.Errorf("%s is in charge but has no description", task.Agent)
		}
		if i > 0 && task.ID <= c.Tasks[i-1].ID || task.ID > c.Asked {
			return fmt.Errorf("task %d is out of order", task.ID)
		}
	}
	for _, w := range s.Due() {
		if !s.Wanted(w) || w.Task != 0 && c.waits(w.Task) {
			return fmt.Errorf("%s is due but not wanted", w.Key())
		}
		if again, ok := ActionOf(w.Key()); !ok || again.Key() != w.Key() {
			return fmt.Errorf("the key %s cannot be parsed", w.Key())
		}
	}
	return nil
}

// TestMain also fails if no test used some row of the tables.
func TestMain(m *testing.M) {
	coverage.Main(m, machinetest.Numbered("D", 11), machinetest.Table{Rows: Table.Rows()})
}

func TestMatrix(t *testing.T) { golden.Check(t, "testdata/matrix.txt", Table.Matrix()) }

// TestReadsBack checks that a dispatch decoded from its last line is identical.
func TestReadsBack(t *testing.T) {
	var s, again Dispatch
	for _, in := range []Input{
		Start{Setup{Mode: Interactive, Host: Fairlead, Lead: "main", Path: "/s", Agents: agents("a", "b")}},
		UserInput{Text: "do", Named: []string{"x.md"}, Match: &Match{Agent: "a", Score: 1.5, Terms: []string{"do"}}},
		Delegate{Agent: "b", By: 1, Text: "help"},
		UserInput{Text: "and that"},
		TaskEnded{Task: 2, OK: true, Result: "here"},
	} {
		changes, err := decide(t, &s, machinetest.Noon, in)
		if err != nil {
			t.Fatalf("%T: %v", in, err)
		}
		for _, ch := range changes {
			again.Apply(decoded(t, encode(t, ch.Body)))
		}
		if !reflect.DeepEqual(s, again) {
			t.Fatalf("after %T:\n%s\n%s", in, encode(t, s), encode(t, again))
		}
	}
}

// decoded is a change with this body.
func decoded(t testing.TB, text string) change.Change {
	t.Helper()
	var body Body
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	return change.Change{Body: &body}
}

func agents(names ...string) (all []Description) {
	for _, name := range names {
		all = append(all, Description{Name: name, Text: "does what " + name + " does"})
	}
	return all
}

// TestRefusals checks that a refusal says why and what to do (X4).
func TestRefusals(t *testing.T) {
	orchestrator := Start{Setup{Mode: Orchestrator, Agents: agents("a", "b")}}
	for name, c := range map[string]struct {
		before []Input
		in     Input
		want   string
	}{
		"no such mode":        {nil, Start{Setup{Mode: "war"}}, "there is no mode"},
		"no queue with hooks": {nil, Start{Setup{Mode: Response, Host: Claude}}, "do not have"},
		"too many agents": {
			nil,
			Start{Setup{Mode: Orchestrator, Agents: make([]Description, agentsMax+1)}},
			"the limit is 2000",
		},
		"started twice": {[]Input{orchestrator}, orchestrator, "cannot take started"},
		"no text":       {[]Input{orchestrator}, UserInput{Text: " \n"}, "the input is empty"},
		"too long": {
			[]Input{orchestrator},
			UserInput{Text: strings.Repeat("x", TextBytesMax+1)},
			"put it into a file",
		},
		"an unknown name":               {[]Input{orchestrator}, UserInput{Text: "x", Match: &Match{Agent: "c"}}, `no agent "c"`},
		"delegated to an unknown agent": {[]Input{orchestrator, UserInput{Text: "x"}}, Delegate{Agent: "c"}, `no agent "c"`},
		"nothing is open":               {[]Input{orchestrator}, Delegate{Agent: "a"}, "cannot take delegated"},
		"no help in this mode": {
			[]Input{orchestrator, UserInput{Text: "x", Match: &Match{Agent: "a"}}},
			Delegate{Agent: "b", By: 1},
			"reports back to MAIN",
		},
		"help for an ended task": {
			[]Input{Start{Setup{Mode: Interactive, Agents: agents("a", "b")}}, UserInput{Text: "x"}},
			Delegate{Agent: "b", By: 7},
			"has ended",
		},
		"answered too early": {
			[]Input{orchestrator, UserInput{Text: "x", Match: &Match{Agent: "a"}}},
			Respond{Text: "x"},
			"a is still working",
		},
		"nothing to answer": {[]Input{orchestrator}, Respond{Text: "x"}, "cannot take responded"},
		"the answer too long": {
			[]Input{orchestrator, UserInput{Text: "x"}},
			Respond{Text: strings.Repeat("x", TextBytesMax+1)},
			"the answer has",
		},
		"no inbox here": {
			[]Input{orchestrator},
			Message{Name: "a.md", Text: "x", Match: &Match{Agent: "a"}},
			"cannot take message_taken",
		},
		"no MAIN in this mode": {[]Input{Start{Setup{Mode: Response, Agents: agents("a")}}}, UserInput{Text: "x"}, "into the inbox"},
		"over":                 {[]Input{orchestrator, End{}}, UserInput{Text: "x"}, "cannot take input"},
		"denied in another": {
			[]Input{orchestrator, UserInput{Text: "a"}, UserInput{Text: "b", Over: true}},
			Deny{Conversation: 1, Tool: "Write"},
			"conv_001 has ended",
		},
		"denied after the end": {[]Input{orchestrator, End{}}, Deny{Tool: "Write"}, "cannot take call_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			var s Dispatch
			for _, in := range c.before {
				if _, err := decide(t, &s, machinetest.Noon, in); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := decide(t, &s, machinetest.Noon, c.in); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v does not say %q", err, c.want)
			}
		})
	}
}

// TestLimits checks that each limit is reported, and that a line of the history stays readable for
// other programs.
func TestLimits(t *testing.T) {
	var s Dispatch
	must := func(in Input) {
		t.Helper()
		if _, err := decide(t, &s, machinetest.Noon, in); err != nil {
			t.Fatal(err)
		}
	}
	must(Start{Setup{Mode: Orchestrator, Host: Fairlead, Agents: agents("a", "b")}})
	must(UserInput{Text: "first"})
	for i := range waitingMax {
		must(UserInput{Text: fmt.Sprint("waits ", i)})
	}
	if _, err := decide(t, &s, machinetest.Noon, UserInput{Text: "one more"}); err == nil ||
		!strings.Contains(err.Error(), "64 inputs are waiting") {
		t.Fatal(err)
	}
	for i := range tasksMax {
		must(Delegate{Agent: "a", Text: "x", Call: fmt.Sprint(i)})
	}
	must(Delegate{Agent: "a", Text: "x", Call: "3"}) // known already: no second task
	if _, err := decide(t, &s, machinetest.Noon, Delegate{Agent: "a", Text: "x"}); err == nil ||
		!strings.Contains(err.Error(), "64 agents are working") {
		t.Fatal(err)
	}
	for i := range filesMax + 5 {
		must(Wrote{File: File{Path: fmt.Sprint("f", i)}})
		must(Wrote{File: File{Path: fmt.Sprint("f", min(i, filesMax-1))}}) // known already
	}
	for i := range tasksMax {
		must(TaskEnded{Call: fmt.Sprint(i), OK: true, Result: strings.Repeat("é", 3000)})
		must(TaskEnded{Call: fmt.Sprint(i), OK: true}) // it has ended before
	}
	if got := len(s.Open.Results); got != resultsMax {
		t.Fatalf("%d results are kept", got)
	}
	if got := len(encode(t, s)); got > 900<<10 {
		t.Fatalf("a line of %d bytes", got)
	}
	summary := s.Open.summary("", nil).Text
	if !strings.Contains(summary, "(further files: ") {
		t.Fatalf("the further files are not counted: %q", summary)
	}
	big := strings.Repeat("x", TextBytesMax)
	for range 3 {
		must(Delegate{Agent: "a", Text: big})
	}
	if _, err := decide(t, &s, machinetest.Noon, Delegate{Agent: "a", Text: big}); err == nil ||
		!strings.Contains(err.Error(), "would exceed") {
		t.Fatal(err)
	}
	must(End{Why: "enough"})
	if !strings.Contains(s.Ended, "were not begun: 64") {
		t.Fatalf("an entry without text: %q", s.Ended)
	}
}

func TestWorkOf(t *testing.T) {
	for _, key := range []string{
		"", "conv_001", "conv_001/1", "conv_001/1/x", "conv_1/1/0", "conv_001/01/0", "conv_001/1/0/0",
		"/conv_001/1/0", "conv_001/-1/0",
	} {
		if w, ok := ActionOf(key); ok {
			t.Errorf("%q is read as %+v", key, w)
		}
	}
	if w, ok := ActionOf("conv_1234/5/6"); !ok || w.Conversation != 1234 || w.Task != 5 || w.Round != 6 {
		t.Errorf("%+v, %v", w, ok)
	}
}

// TestRoundsEnd checks that an agent that asks for help in every round must answer in the end.
func TestRoundsEnd(t *testing.T) {
	s := Dispatch{}
	must := func(in Input) {
		t.Helper()
		if _, err := decide(t, &s, machinetest.Noon, in); err != nil {
			t.Fatal(err)
		}
	}
	must(Start{Setup{Mode: Interactive, Host: Fairlead, Agents: agents("a", "b")}})
	must(UserInput{Text: "do", Match: &Match{Agent: "a"}})
	for round := range roundsMax {
		must(Delegate{Agent: "b", By: 1, Text: "help"})
		must(TaskEnded{Task: uint64(round) + 2, OK: true})
		must(TaskEnded{Task: 1, Round: round, OK: true, Result: "I have asked"})
	}
	if _, err := decide(t, &s, machinetest.Noon, Delegate{Agent: "b", By: 1, Text: "help"}); err == nil ||
		!strings.Contains(err.Error(), "in 20 rounds") {
		t.Fatal(err)
	}
	must(TaskEnded{Task: 1, Round: roundsMax, OK: true})
}
