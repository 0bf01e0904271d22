package question

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// coverage counts what Decide returned in the tests of this package.
var coverage = machinetest.NewCoverage()

// TestMain also fails if no test used some row of the tables.
func TestMain(m *testing.M) {
	coverage.Main(m, machinetest.Numbered("Q", 7), machinetest.Table{Rows: Table.Rows()})
}

func encode(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// decide calls Decide, counts the rows of its changes, checks what must hold for every result, and
// applies the changes. All tests of this package use it. A refusal is a normal result.
func decide(t testing.TB, b *Questions, at time.Time, by string, in Input) ([]change.Change, error) {
	t.Helper()
	small := len(b.Questions)+len(b.Saved) < 80 // for many questions only their number is checked
	before := ""
	if small {
		before = encode(t, b)
	}
	kind, id, _ := strings.Cut(by, "/")
	changes, err := b.Decide(at, change.Actor{Kind: kind, ID: id}, in)
	if small && encode(t, b) != before {
		t.Fatalf("%T: Decide changed the questions", in)
	}
	if err != nil {
		var refusal *table.Refusal
		if len(changes) > 0 || !errors.As(err, &refusal) || refusal.Reason == "" && len(refusal.Takes) == 0 {
			t.Fatalf("%T: %v with %d changes", in, err, len(changes))
		}
		return nil, err
	}
	for _, ch := range changes {
		coverage.Row(ch.Row)
		if q := change.As[Body](ch.Body).Question; q != nil {
			rule, known := Table[State(ch.From)][Event(ch.Trigger)]
			if !known || rule.ID != ch.Row || string(rule.To) != ch.To || q.State != rule.To || "question/"+q.ID != ch.Entity {
				t.Fatalf("not a row of the table: %+v", ch)
			}
			coverage.Pair("", ch.From, ch.Trigger)
		}
		was := encode(t, ch)
		b.Apply(ch)
		defer func() {
			if encode(t, ch) != was {
				t.Fatalf("a later change modified an earlier one: %s", ch.Trigger)
			}
		}()
	}
	check(t, b)
	return changes, nil
}

// check checks what must always hold.
func check(t testing.TB, b *Questions) {
	t.Helper()
	open := map[string]int{}
	for id, q := range b.Questions {
		switch {
		case q.ID != id || q.N == 0 || q.N > b.Asked:
			t.Fatalf("%s: its id is %s, the %dth of %d", id, q.ID, q.N, b.Asked)
		case q.State == Open && (q.By != "" || !q.AnsweredAt.IsZero()):
			t.Fatalf("%s is open but answered by %s", id, q.By)
		case q.State == Answered && (q.By == "" || q.AnsweredAt.IsZero()), q.State == Delivered && (q.By == "" || q.EndedAt.IsZero()):
			t.Fatalf("%s is %s without an author: %+v", id, q.State, q)
		case q.Over() != slices.Contains(b.Past, id):
			t.Fatalf("%s is %s, but the ended questions are %v", id, q.State, b.Past)
		case q.Option != "" && !slices.ContainsFunc(q.Options, func(o Option) bool { return o.ID == q.Option }) && q.Kind == Permission:
			t.Fatalf("%s was answered with %s, which it does not offer", id, q.Option)
		}
		if says, known := q.says(slices.IndexFunc(q.Options, func(o Option) bool { return o.ID == q.Option })); known &&
			q.Kind == Permission && says != q.Allow {
			t.Fatalf("%s: %t with the option %s", id, q.Allow, q.Option)
		}
		if q.State == Open {
			open[q.Agent]++
			if s := b.Covering(q.Agent, q.Session, q.Tool, q.Key); s != nil && q.Kind == Permission && q.CanSay(s.Allow) {
				t.Fatalf("%s waits although the saved answer %s applies", id, s.ID)
			}
		}
	}
	for agent, n := range open {
		if n > openMax {
			t.Fatalf("%d questions of %s are open", n, agent)
		}
	}
	if len(b.Past) > pastMax {
		t.Fatalf("%d ended questions", len(b.Past))
	}
	if len(b.Questions)+len(b.Saved) >= 80 {
		return
	}
	again := new(Questions)
	if err := json.Unmarshal([]byte(encode(t, b)), again); err != nil || !reflect.DeepEqual(again, b) {
		t.Fatalf("the questions differ after decoding: %v\n%s", err, cmp.Diff(b, again))
	}
}

func TestMatrix(t *testing.T) {
	golden.Check(t, filepath.Join("testdata", "matrix.txt"), Table.Matrix())
}

// four are options with a plain yes and no; sly are options whose only yes means more than it says.
var (
	four = []Option{
		{ID: "aa", Kind: "allow_always"},
		{ID: "a1", Kind: "allow_once"},
		{ID: "r1", Kind: "reject_once"},
		{ID: "ra", Kind: "reject_always"},
	}
	sly = []Option{{ID: "yolo", Kind: "allow_once_and_mode"}, {ID: "fine", Kind: "allow_once"}}
)

func permission(ask, tool, key string) Question {
	return Question{
		Kind: Permission, Agent: "coder", Session: "coder-1", Ask: ask, Tool: tool, Call: key, Key: key, What: "Run it",
		Options: four,
	}
}

// story is the questions of one test.
type story struct {
	t         *testing.T
	questions Questions
	at        time.Time
}

func (s *story) must(by string, in Input) []change.Change {
	s.t.Helper()
	s.at = s.at.Add(time.Second)
	changes, err := decide(s.t, &s.questions, s.at, by, in)
	if err != nil {
		s.t.Fatal(err)
	}
	return changes
}

func (s *story) refused(by string, in Input, want string) {
	s.t.Helper()
	if _, err := decide(s.t, &s.questions, s.at, by, in); err == nil || !strings.Contains(err.Error(), want) {
		s.t.Fatalf("%+v: %v, want %q", in, err, want)
	}
}

func (s *story) is(id string, state State, allow bool, option, by string) {
	s.t.Helper()
	q := s.questions.Questions[id]
	if q == nil || q.State != state || q.Allow != allow || q.Option != option || q.By != by {
		s.t.Fatalf("%s is %+v, want %s %t %s by %s", id, q, state, allow, option, by)
	}
}

func begin(t *testing.T) *story { return &story{t: t, at: machinetest.Noon} }

// Q1, Q3, Q6: a question is asked, answered once and delivered. A delivery that is reported again
// after a crash has no effect.
func TestAskedAnsweredDelivered(t *testing.T) {
	s := begin(t)
	s.must("agent/coder", Ask{Question: permission("7", "Bash", "rm -rf build")})
	if again := s.must("agent/coder", Ask{Question: permission("7", "Bash", "rm -rf build")}); len(again) != 0 {
		t.Fatalf("a repeated question is stored twice: %+v", again)
	}
	s.is("q1", Open, false, "", "")
	s.must("human/ann", Answer{ID: "q1", Allow: true})
	s.is("q1", Answered, true, "a1", "human/ann")
	s.refused("human/bob", Answer{ID: "q1"}, "it was answered by human/ann")
	s.must("engine", Hand{ID: "q1"})
	if again := s.must("engine", Hand{ID: "q1"}); len(again) != 0 {
		t.Fatal("told twice")
	}
	s.refused("human/bob", Answer{ID: "q1"}, "it was answered by human/ann")
	if len(s.questions.Saved) != 0 {
		t.Errorf("an answer for once was saved: %+v", s.questions.Saved)
	}
	s.must("agent/coder", Ask{Question: permission("8", "Bash", "rm -rf build")})
	s.is("q2", Open, false, "", "")
	s.refused("human/ann", Answer{ID: "q9"}, "no such question")
}

// Q2: rules answer at once. A rule that denies overrides a saved answer.
func TestRulesAndSavedAnswers(t *testing.T) {
	s := begin(t)
	s.must("agent/coder",
		Ask{Question: permission("1", "Bash", "git status"), Verdict: Verdict{Rule: "allow Bash(git status*)", Allow: true}})
	s.is("q1", Answered, true, "a1", "rule")
	s.must("agent/coder", Ask{Question: permission("2", "Bash", "make")})
	s.must("agent/coder", Ask{Question: permission("3", "Bash", "make")})
	s.must("agent/coder", Ask{Question: permission("4", "Write", "make")})
	s.must("human/ann", Answer{ID: "q2", Allow: true, Scope: Session})
	s.is("q3", Answered, true, "a1", "rule") // open questions are answered, too
	if q := s.questions.Questions["q3"]; q.Rule != "s1" {
		t.Errorf("which answer: %+v", q)
	}
	s.is("q4", Open, false, "", "") // the same arguments of another tool are another call
	s.must("agent/coder", Ask{Question: permission("5", "Bash", "make"), Verdict: Verdict{Rule: "deny Bash(make)"}})
	s.is("q5", Answered, false, "r1", "rule")
	s.must("agent/coder", Ask{Question: permission("6", "Bash", "make -B")})
	s.is("q6", Open, false, "", "")

	other := permission("1", "Bash", "make")
	other.Session = "coder-2"
	s.must("agent/coder", Ask{Question: other})
	s.is("q7", Open, false, "", "") // the answer was saved for the other session
	s.must("human/ann", Answer{ID: "q7", Scope: Always})
	s.is("q7", Answered, false, "r1", "human/ann")
	third := permission("9", "Bash", "make")
	s.must("agent/coder", Ask{Question: third})
	s.is("q8", Answered, false, "r1", "rule") // a saved no has priority over a saved yes
	s.must("human/ann", Revoke{ID: "s2"})
	s.must("agent/coder", Ask{Question: permission("10", "Bash", "make")})
	s.is("q9", Answered, true, "a1", "rule")
	s.must("engine", TakeBack{Session: "coder-1", Why: "its session is over"})
	if len(s.questions.Saved) != 0 {
		t.Errorf("a saved answer outlives its session: %+v", s.questions.List())
	}
	s.refused("human/ann", Revoke{ID: "s1"}, "there is no such saved answer")
	foreign := permission("1", "Bash", "make")
	foreign.Agent, foreign.Session = "tester", "tester-1"
	s.must("agent/tester", Ask{Question: foreign})
	if q := s.questions.Of("tester-1", "1"); q.State != Open {
		t.Errorf("a saved answer of coder applies to tester: %+v", q)
	}
	s.must("engine", Cover{ID: s.questions.Of("tester-1", "1").ID, Verdict: Verdict{Rule: "allow Bash", Allow: true}})
	if q := s.questions.Of("tester-1", "1"); q.State != Answered || q.Rule != "allow Bash" {
		t.Errorf("%+v", q)
	}
}

// Q4: after its time limit a question gets its default answer, and not before.
func TestTimeout(t *testing.T) {
	s := begin(t)
	q := permission("1", "Bash", "make")
	q.ExpiresAt = machinetest.Noon.Add(time.Minute)
	s.must("agent/coder", Ask{Question: q})
	q.Ask, q.Otherwise = "2", true
	q.ExpiresAt = machinetest.Noon.Add(2 * time.Minute)
	s.must("agent/coder", Ask{Question: q})
	resume := Question{
		Kind: Resume, Agent: "coder", Session: "coder-1", Ask: "resume", Options: []Option{{ID: "resume"}, {ID: "fresh"}},
		Default: "fresh", ExpiresAt: machinetest.Noon.Add(time.Minute),
	}
	s.must("engine", Ask{Question: resume})
	s.must("agent/coder",
		Ask{Question: Question{
			Kind: Asked, Agent: "coder", Session: "coder-1", Ask: "w", What: "Which?",
			ExpiresAt: machinetest.Noon.Add(time.Minute),
		}})
	if changes := s.must("engine", Due{}); len(changes) != 0 {
		t.Fatalf("too early: %+v", changes)
	}
	if at := s.questions.Deadline(); !at.Equal(machinetest.Noon.Add(time.Minute)) {
		t.Fatalf("the deadline is %v", at)
	}
	s.at = machinetest.Noon.Add(time.Minute)
	s.must("engine", Due{})
	s.is("q1", Answered, false, "r1", "time")
	s.is("q2", Open, false, "", "")
	s.is("q3", Answered, false, "fresh", "time")
	s.is("q4", Answered, false, "", "time")
	s.refused("human/ann", Answer{ID: "q1", Allow: true}, "no answer came in time")
	s.at = machinetest.Noon.Add(time.Hour)
	s.must("engine", Due{})
	s.is("q2", Answered, true, "a1", "time")
	if at := s.questions.Deadline(); !at.IsZero() {
		t.Errorf("a deadline without a question: %v", at)
	}
}

// Q5: an agent that withdraws a question receives no answer, and the question records why.
func TestWithdrawn(t *testing.T) {
	s := begin(t)
	s.must("agent/coder", Ask{Question: permission("1", "Bash", "make")})
	s.must("agent/coder", Ask{Question: permission("2", "Bash", "make")})
	s.must("human/ann", Answer{ID: "q2", Allow: true})
	s.must("agent/coder", TakeBack{ID: "q1", Why: "it was cancelled"})
	s.is("q1", Withdrawn, false, "", "")
	s.refused("human/ann", Answer{ID: "q1", Allow: true}, "it was cancelled")
	s.must("engine", TakeBack{Session: "coder-1", Why: "its session is over"})
	s.is("q2", Withdrawn, true, "a1", "human/ann")
	for _, in := range []Input{TakeBack{ID: "q1"}, TakeBack{ID: "q99"}, TakeBack{Session: "coder-1"}, Hand{ID: "q2"}} {
		if changes := s.must("engine", in); len(changes) != 0 {
			t.Errorf("%+v changed %+v", in, changes)
		}
	}
}

// TestOptions checks that an option is chosen by its id and kind: never the first one that allows,
// and never one that does more than it says.
func TestOptions(t *testing.T) {
	s := begin(t)
	q := permission("1", "Bash", "make")
	q.Options = sly
	s.must("agent/coder", Ask{Question: q})
	s.must("human/ann", Answer{ID: "q1", Allow: true})
	s.is("q1", Answered, true, "fine", "human/ann")
	q.Ask = "2"
	s.must("agent/coder", Ask{Question: q})
	s.must("human/ann", Answer{ID: "q2"})
	s.is("q2", Answered, false, "", "human/ann") // the program offers no option for no; the driver decides how to deliver it
	q.Ask = "3"
	s.must("agent/coder", Ask{Question: q})
	s.refused("human/ann", Answer{ID: "q3", Allow: false, Option: "fine"}, "says yes, and the answer no")
	s.refused("human/ann", Answer{ID: "q3", Allow: true, Option: "aa"}, "there is no option")
	s.refused("human/ann", Answer{ID: "q3", Allow: true, Scope: "ever"}, "once, session or always")
	s.refused("human/ann", Answer{ID: "q3", Allow: true, Text: strings.Repeat("x", textMax+1)}, "the limit is")
	s.must("human/ann", Answer{ID: "q3", Allow: true, Option: "yolo"}) // a person may choose it
	s.is("q3", Answered, true, "yolo", "human/ann")
	q.Ask, q.Options = "strange", []Option{{ID: "plan", Kind: "choice"}}
	s.must("agent/coder", Ask{Question: q})
	s.refused("human/ann", Answer{ID: "q4", Allow: true, Option: "plan", Scope: Always}, "no plain yes")
	q.Ask, q.Options = "stranger", append([]Option{{ID: "plan", Kind: "choice"}}, sly...)
	s.must("agent/coder", Ask{Question: q})
	s.refused("human/ann", Answer{ID: "q5", Allow: true, Option: "plan", Scope: Always}, "the meaning of the option")
	s.must("human/ann", Answer{ID: "q5", Allow: true, Option: "plan"})
	q.Options = sly
	q.Ask, q.Key = "4", ""
	s.must("agent/coder", Ask{Question: q})
	s.refused("human/ann", Answer{ID: "q6", Allow: true, Scope: Always}, "cannot be saved")
	for i, ask := range []Question{{Kind: Asked, What: "Which one?"}, {Kind: Resume, Options: []Option{{ID: "resume"}, {ID: "fresh"}}}} {
		ask.Agent, ask.Session, ask.Ask = "coder", "coder-1", fmt.Sprint("x", i)
		s.must("agent/coder", Ask{Question: ask})
	}
	s.refused("human/ann", Answer{ID: "q7"}, "it asks for text")
	s.refused("human/ann", Answer{ID: "q7", Text: "so", Scope: Always}, "only the answer to a permission")
	s.refused("human/ann", Answer{ID: "q8", Allow: true}, "name one of resume, fresh")
	s.must("human/ann", Answer{ID: "q7", Text: "the blue one"})
	s.must("human/ann", Answer{ID: "q8", Option: "resume"})
}

// TestLimits checks that an agent cannot ask without end, and that text is refused that does not
// fit into the journal.
func TestLimits(t *testing.T) {
	s := begin(t)
	for i := range openMax {
		s.must("agent/coder", Ask{Question: permission(fmt.Sprint(i), "Bash", fmt.Sprint(i))})
	}
	s.refused("agent/coder", Ask{Question: permission("one more", "Bash", "x")}, "are open already")
	s.must("agent/coder", Ask{Question: permission("ruled", "Bash", "x"), Verdict: Verdict{Rule: "allow Bash", Allow: true}})
	for _, q := range []Question{{}, {Agent: "a", Session: "s"}, {Agent: "a", Session: "s", Ask: "1", Kind: "riddle"}} {
		s.refused("agent/a", Ask{Question: q}, "Q1")
	}
	long := permission("long", "Bash\nx", strings.Repeat("ä", 9999))
	long.Agent, long.What, long.Call, long.Why = "b", "\xff"+strings.Repeat("w", 9999), strings.Repeat("ä", 9999), "a\nb"
	long.Options = slices.Repeat([]Option{{ID: "x"}, {ID: strings.Repeat("y", lineMax+1)}, {}}, 99)
	long.Paths = slices.Repeat([]string{"/x"}, 99)
	s.must("agent/b", Ask{Question: long})
	q := s.questions.Of("coder-1", "long")
	if len(q.What) > lineMax+3 || len(q.Call) > callMax+3 || q.Why != "a" || q.Tool != "Bash" || len(q.Options) > optionsMax ||
		len(q.Paths) > pathsMax || len(encode(t, q)) > 64<<10 {
		t.Errorf("%+v", q)
	}
	for i := range savedMax + 20 {
		ask := permission(fmt.Sprint("c", i), "Bash", fmt.Sprint("c", i))
		ask.Agent = "c"
		s.must("agent/c", Ask{Question: ask})
		s.must("human/ann", Answer{ID: s.questions.Of("coder-1", ask.Ask).ID, Allow: true, Scope: Always})
		s.must("engine", Hand{ID: s.questions.Of("coder-1", ask.Ask).ID})
	}
	if n := len(s.questions.Saved); n != savedMax {
		t.Errorf("%d saved answers", n)
	}
	if s.questions.Of("coder-1", "c0") != nil || s.questions.Of("coder-1", fmt.Sprint("c", savedMax)) == nil {
		t.Error("the oldest ended questions are kept instead of the newest")
	}
}

// TestRandomOrders applies random inputs, checks the invariants after each one, and compares the
// replayed questions.
func TestRandomOrders(t *testing.T) {
	seeds := testsize.Pick[uint64](20, 80, 80)
	if testsize.Race {
		seeds = 12
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { randomly(t, rand.New(rand.NewPCG(seed, 0)), 150) })
	}
}

func FuzzOrders(f *testing.F) {
	f.Add(uint64(1), 20)
	f.Add(uint64(99), 60)
	f.Fuzz(func(t *testing.T, seed uint64, n int) {
		randomly(t, rand.New(rand.NewPCG(seed, 1)), min(max(n, 0), 200))
	})
}

func randomly(t testing.TB, rnd *rand.Rand, n int) {
	var questions Questions
	var journal []string
	at := machinetest.Noon
	untold := map[string]bool{}
	for range n {
		at = at.Add(time.Duration(rnd.IntN(90)) * time.Second)
		changes, err := decide(t, &questions, at, []string{"human/ann", "engine/timer", "agent/coder"}[rnd.IntN(3)], anyInput(rnd))
		if err != nil {
			continue
		}
		for _, ch := range changes {
			journal = append(journal, encode(t, ch.Body))
			if q := change.As[Body](ch.Body).Question; q != nil {
				if q.State == Answered && untold[q.ID] {
					t.Fatalf("%s was answered twice", q.ID)
				}
				untold[q.ID] = q.State == Answered
			}
		}
	}
	var again Questions
	for _, line := range journal {
		var body Body
		if err := json.Unmarshal([]byte(line), &body); err != nil {
			t.Fatal(err)
		}
		again.Apply(change.Change{Body: &body})
	}
	if !reflect.DeepEqual(questions, again) {
		t.Fatalf("the replayed questions differ:\n%s", cmp.Diff(questions, again))
	}
	for _, session := range []string{"a-1", "a-2", "b-1", "b-2"} {
		if _, err := decide(t, &questions, at, "engine", TakeBack{Session: session, Why: "over"}); err != nil {
			t.Fatal(err)
		}
	}
	if left := append(questions.Open(""), questions.Undelivered("")...); len(left) > 0 {
		t.Fatalf("a question does not end: %+v", left[0])
	}
}

func anyInput(rnd *rand.Rand) Input {
	pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
	question, standing := fmt.Sprint("q", rnd.IntN(40)), fmt.Sprint("s", rnd.IntN(20))
	agent := pick("a", "b")
	session := agent + pick("-1", "-2")
	switch rnd.IntN(12) {
	case 0, 1, 2, 3:
		q := Question{
			Kind: []Kind{Permission, Permission, Permission, Asked, Resume, "riddle"}[rnd.IntN(6)], Agent: agent, Session: session,
			Ask:  fmt.Sprint(rnd.IntN(60)),
			Tool: pick("Bash", "Write"), Key: pick("", "x", "y", "z"), Options: [][]Option{four, sly, nil}[rnd.IntN(3)],
			Otherwise: rnd.IntN(2) == 0,
		}
		if rnd.IntN(2) == 0 {
			q.ExpiresAt = machinetest.Noon.Add(time.Duration(rnd.IntN(200)) * time.Minute)
		}
		if q.Kind == Resume {
			q.Default = "a1"
		}
		return Ask{Question: q, Verdict: []Verdict{{}, {}, {}, {Rule: "allow x", Allow: true}, {Rule: "deny x"}}[rnd.IntN(5)]}
	case 4, 5, 6:
		return Answer{
			ID: question, Allow: rnd.IntN(2) == 0, Option: pick("", "", "", "a1", "ra", "yolo"), Text: pick("", "so"),
			Scope: Scope(pick("", "once", "session", "always", "ever")),
		}
	case 7:
		return Hand{ID: question}
	case 8:
		return Due{}
	case 9:
		return Revoke{ID: standing}
	case 10:
		return Cover{ID: question, Verdict: []Verdict{{}, {Rule: "allow x", Allow: true}, {Rule: "deny x"}}[rnd.IntN(3)]}
	}
	switch rnd.IntN(3) {
	case 0:
		return TakeBack{Session: session, Why: "over"}
	case 1:
		return TakeBack{Session: session, Ask: fmt.Sprint(rnd.IntN(60)), Why: "it does not care"}
	}
	return TakeBack{ID: question, Why: "it changed its mind"}
}

// If the program offers no plain yes, only a person can answer, and must name the option. Otherwise
// the program would get no answer and stop.
func TestNoPlainYes(t *testing.T) {
	no := Option{ID: "deny", Kind: "reject_once"}
	for name, options := range map[string][]Option{
		"choices": {{ID: "choice_1", Kind: "choice"}, {ID: "choice_2", Kind: "choice"}, no},
		"a mode":  {{ID: "auto", Kind: "allow_once_and_mode"}, no},
		"none":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			b := &Questions{}
			ask := func(id, rule string, allow bool) *Question {
				q := Question{
					Kind: Permission, Agent: "ada", Session: "ada-1", Ask: id, What: "which", Tool: "AskUserQuestion", Key: "k",
					Options: options, ExpiresAt: machinetest.Noon.Add(time.Hour), Otherwise: true,
				}
				if _, err := decide(t, b, machinetest.Noon, "engine",
					Ask{Question: q, Verdict: Verdict{Rule: rule, Allow: allow}}); err != nil {
					t.Fatal(err)
				}
				return b.Of("ada-1", id)
			}
			if q := ask("a", "allow *", true); q.State != Open {
				t.Fatalf("a rule has answered %+v", q)
			}
			if q := ask("b", "deny *", false); q.State != Answered || q.Allow {
				t.Errorf("a rule's no is %+v", q)
			}
			if _, err := decide(t, b, machinetest.Noon, "human/ann", Answer{ID: "q1", Allow: true}); err == nil ||
				!strings.Contains(err.Error(), "no plain yes") {
				t.Errorf("a plain yes: %v", err)
			}
			if options != nil {
				if _, err := decide(t, b, machinetest.Noon, "human/ann",
					Answer{ID: "q1", Allow: true, Option: options[0].ID, Scope: Always}); err == nil {
					t.Error("it stands")
				}
				if _, err := decide(t, b, machinetest.Noon, "human/ann",
					Answer{ID: "q1", Allow: true, Option: options[0].ID}); err != nil || b.Questions["q1"].Option != options[0].ID {
					t.Errorf("%+v, %v", b.Questions["q1"], err)
				}
				ask("c", "", false)
			}
			if _, err := decide(t, b, machinetest.Noon.Add(2*time.Hour), "time", Due{}); err != nil {
				t.Fatal(err)
			}
			for _, q := range b.Questions {
				if q.By == byTime && (q.Allow || options != nil && q.Option != "deny") {
					t.Errorf("the timeout answered %+v", q)
				}
			}
		})
	}
}

// TestReachHost checks when a person is asked whether a session may reach a host: not while the question is open, not after a no in the
// same session, and again after a yes for once. An answer that was saved covers the next session.
func TestReachHost(t *testing.T) {
	at, human := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), change.Actor{Kind: "human", ID: "ann"}
	var b Questions
	decide := func(in Input) {
		t.Helper()
		changes, err := b.Decide(at, human, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range changes {
			b.Apply(ch)
		}
	}
	ask := func(session, host string, want bool) {
		t.Helper()
		in, due := b.ReachHost("coder", session, host)
		if due != want {
			t.Fatalf("%s at %s: due is %v, want %v", host, session, due, want)
		}
		if due {
			decide(in)
		}
	}
	answer := func(id string, allow bool, scope Scope) {
		t.Helper()
		decide(Answer{ID: id, Allow: allow, Scope: scope})
		decide(Hand{ID: id})
	}
	ask("coder-1", "a.example.org:443", true)
	ask("coder-1", "a.example.org:443", false) // open
	ask("coder-1", "b.example.org:443", true)
	ask("coder-2", "a.example.org:443", true)
	decide(Answer{ID: "q1", Allow: true})
	ask("coder-1", "a.example.org:443", false) // on its way
	decide(Hand{ID: "q1"})
	ask("coder-1", "a.example.org:443", true) // that was for once
	answer("q2", false, Once)
	ask("coder-1", "b.example.org:443", false)
	answer("q4", true, Always)
	ask("coder-3", "a.example.org:443", true)
	if q := b.Questions["q5"]; q.State != Answered || !q.Allow || q.By != ByRule {
		t.Errorf("a saved answer is not taken: %+v", q)
	}
}
