package dispatch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// story applies inputs to a new dispatch. None of them may be refused.
func story(t *testing.T, ins ...Input) *Dispatch {
	t.Helper()
	s := &Dispatch{}
	s.decideAll(t, ins...)
	return s
}

func (s *Dispatch) decideAll(t *testing.T, ins ...Input) (all []change.Change) {
	t.Helper()
	for _, in := range ins {
		changes, err := decide(t, s, machinetest.Noon, in)
		if err != nil {
			t.Fatalf("%T: %v", in, err)
		}
		all = append(all, changes...)
	}
	return all
}

func refused(t *testing.T, s *Dispatch, in Input, want string) {
	t.Helper()
	if _, err := decide(t, s, machinetest.Noon, in); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("%T: %v does not say %q", in, err, want)
	}
}

// said returns what dialogue.md gets from some changes.
func said(changes []change.Change) string {
	var b strings.Builder
	for _, ch := range changes {
		for _, e := range change.As[Body](ch.Body).Entries {
			fmt.Fprintf(&b, "%s %s: %s\n", e.Kind, e.Who, e.Text)
		}
	}
	return b.String()
}

func hosted(mode Mode, names ...string) Start {
	return Start{Setup{Mode: mode, Host: Fairlead, Lead: "main", Agents: agents(names...)}}
}

// D7: the user gets an answer regardless of the length of MAIN's text and of how MAIN ended,
// because no person or program would see a refusal.
func TestMainAlwaysAnswers(t *testing.T) {
	s := story(t, hosted(Orchestrator, "a"), UserInput{Text: "talk"})
	long := s.decideAll(t, MainEnded{OK: true, Result: strings.Repeat("é", TextBytesMax)})
	if text := change.As[Body](long[0].Body).Entries[0].Text; s.Open != nil || len(text) > TextBytesMax || !strings.HasSuffix(text, "…") {
		t.Fatalf("the answer has %d bytes; open: %+v", len(text), s.Open)
	}
	s.decideAll(t, UserInput{Text: "and now"})
	if got := said(s.decideAll(t, MainEnded{})); !strings.Contains(got, "MAIN failed") {
		t.Fatalf("the answer of a MAIN that failed without text is %q", got)
	}
	s = story(t, Start{Setup{Mode: Response, Host: Fairlead, Agents: agents("a")}},
		Message{Name: "m", Text: "x", Match: &Match{Agent: "a"}})
	if got := s.decideAll(t, MainEnded{OK: true}); len(got) > 0 {
		t.Fatalf("mode response has no MAIN, but its end has an effect: %+v", got)
	}
}

// D3: a delegation without text is valid, and the asking agent gets the result.
func TestDelegationWithoutWords(t *testing.T) {
	s := story(t, hosted(Orchestrator, "a"), UserInput{Text: "x"}, Delegate{Agent: "a"}, TaskEnded{Task: 1, OK: true, Result: "here"},
		MainEnded{OK: true, Result: "I asked a"})
	due := s.Due()
	if len(due) != 1 || due[0].Task != 0 || due[0].Round != 1 || len(due[0].Results) != 1 {
		t.Fatalf("MAIN gets the result: %+v", due)
	}
}

// TestUndeliveredResults checks that undelivered results are kept longer than delivered ones, and
// that each dropped one is recorded.
func TestUndeliveredResults(t *testing.T) {
	s := story(t, hosted(Orchestrator, "a"), UserInput{Text: "x"})
	run := func(n int) (changes []change.Change) {
		for range n {
			s.decideAll(t, Delegate{Agent: "a", Text: "do"})
			changes = append(changes,
				s.decideAll(t, TaskEnded{Task: s.Open.Asked, OK: true, Result: fmt.Sprint("result ", s.Open.Asked)})...)
		}
		return changes
	}
	run(20)
	s.decideAll(t, MainEnded{OK: true}) // this delivers the twenty results
	run(5)
	s.decideAll(t, MainEnded{Round: 1, OK: true})
	if got := run(27); strings.Contains(said(got), "this one is only recorded here") {
		t.Fatalf("twenty results were delivered, but a new one was dropped: %s", said(got))
	}
	s.decideAll(t, MainEnded{Round: 2, OK: true}) // these 27 results, and no older ones
	if due := s.Due(); len(due) != 1 || len(due[0].Results) != 27 || due[0].Results[0].Text != "result 26" {
		t.Fatalf("undelivered results: %+v", due)
	}
	s.decideAll(t, MainEnded{Round: 3, OK: true})
	s = story(t, hosted(Orchestrator, "a"), UserInput{Text: "x"})
	got := run(resultsMax + 2)
	if n := strings.Count(said(got), "this one is only recorded here"); n != 2 {
		t.Fatalf("%d results are recorded as dropped, want 2", n)
	}
}

// D5: if an agent that has finished had asked another one, the dispatch no longer waits for that
// one, and the record says so.
func TestDroppedWithItsRequester(t *testing.T) {
	s := story(t, Start{Setup{Mode: Interactive, Agents: agents("a", "b", "c")}}, UserInput{Text: "x", Match: &Match{Agent: "a"}},
		Delegate{Agent: "b", By: 1, Text: "help"}, Delegate{Agent: "c", By: 2, Text: "help"})
	got := said(s.decideAll(t, TaskEnded{Task: 1, OK: true}))
	if s.Phase != Talking || !strings.Contains(got, "note b: is no longer awaited") ||
		!strings.Contains(got, "note c: is no longer awaited") {
		t.Fatalf("%s: %s", s.Phase, got)
	}
}

// TestNamesAreBounded checks that a line of the history stays readable, regardless of names from
// outside.
func TestNamesAreBounded(t *testing.T) {
	huge := strings.Repeat("n", 300<<10)
	s := story(t, Start{Setup{Mode: Orchestrator, Host: Claude, Agents: agents("a")}})
	refused(t, s, UserInput{Text: "x", Named: []string{huge}}, "name their folder")
	refused(t, s, UserInput{Text: "x", Named: make([]string, namedMax+1)}, "name their folder")
	match := &Match{Agent: "a", Terms: []string{huge}}
	all := s.decideAll(t, UserInput{Text: "x", Match: match}, Delegate{Agent: "a", Text: "x", Call: huge, Params: huge, Trigger: huge})
	all = append(all, s.decideAll(t, Delegate{Agent: "a", Text: "x", Call: huge})...) // known although its name is cut
	all = append(all, s.decideAll(t, Seen{Caller: huge, Agent: "a"}, Seen{Caller: huge, Agent: "a"})...)
	if c := s.Open; len(c.Tasks) != 2 || len(c.Tasks[0].Caller) > wordsMax {
		t.Fatalf("%d tasks", len(c.Tasks))
	}
	path := File{Path: huge}
	all = append(all,
		s.decideAll(t, Wrote{File: path}, Wrote{File: path}, Wrote{},
			Deny{Tool: huge, Call: huge, Reason: huge, Delegate: huge, Capability: huge})...)
	if n := len(s.Open.Files); n != 1 {
		t.Fatalf("%d files, want one, which was written twice", n)
	}
	all = append(all, s.decideAll(t, TaskEnded{Caller: huge, OK: true}, TaskEnded{Call: huge, OK: true})...)
	if n := len(s.Open.Tasks); n != 0 {
		t.Fatalf("%d tasks are open, but both were ended by name", n)
	}
	all = append(all,
		s.decideAll(t, Respond{Text: "so", Files: []File{path, {}}}, UserInput{Text: "y"}, Interrupt{Why: huge}, UserInput{Text: "z"},
			End{Why: huge})...)
	for _, ch := range all {
		if n := len(encode(t, ch)); n > 80<<10 {
			t.Errorf("%s has %d bytes", ch.Trigger, n)
		}
	}
	s = story(t, Start{Setup{Mode: Response, Agents: agents("a")}})
	refused(t, s, Message{Text: "x"}, "rename the file")
	refused(t, s, Message{Name: huge, Text: "x"}, "rename the file")
	if got := s.decideAll(t, Message{Name: "m", Ranking: huge}); len(change.As[Body](got[0].Body).Aside.Ranking) > TextBytesMax {
		t.Error("the ranking was not shortened")
	}
	s.decideAll(t, Message{Name: "m", Text: "x", Match: &Match{Agent: "a"}})
	refused(t, s, Delegate{Agent: "a", By: 1, Text: "help"}, "in mode response agents cannot ask each other")
}

// TestNamedCount checks that the paths in a waiting input count towards the limit.
func TestNamedCount(t *testing.T) {
	s := story(t, hosted(Orchestrator, "a"), UserInput{Text: "first"})
	named := []string{strings.Repeat("p", TextBytesMax-1)}
	for range 4 {
		s.decideAll(t, UserInput{Text: "x", Named: named})
	}
	refused(t, s, UserInput{Text: "x", Named: named}, "would exceed")
}

// TestFilesAtTheEnd checks that files above the limit are counted.
func TestFilesAtTheEnd(t *testing.T) {
	s := story(t, Start{Setup{Mode: Orchestrator}}, UserInput{Text: "x"})
	var files []File
	for i := range filesMax + 3 {
		files = append(files, File{Path: fmt.Sprint("f", i)})
	}
	got := s.decideAll(t, Respond{Files: files})
	if sum := change.As[Body](got[0].Body).Summary; len(sum.Files) != filesMax || !strings.Contains(sum.Text, "at most 3)") {
		t.Fatalf("%d files, %q", len(sum.Files), sum.Text)
	}
}

// TestTasksEnd checks that a conversation has a limit of tasks, so that agents cannot ask each
// other in circles forever.
func TestTasksEnd(t *testing.T) {
	s := story(t, hosted(Orchestrator, "a"), UserInput{Text: "x"})
	for range askedMax {
		s.decideAll(t, Delegate{Agent: "a", Text: "x"}, TaskEnded{Task: s.Open.Asked + 1, OK: true})
		s.decideAll(t, TaskEnded{Task: s.Open.Asked, OK: true})
	}
	refused(t, s, Delegate{Agent: "a", Text: "x"}, "has had 1000 tasks")
}

// D1: MAIN and QUEUE cannot be names of agents, because then a line could not say which one is in
// charge.
func TestNamesOfStates(t *testing.T) {
	for _, name := range []string{Main, Desk, ""} {
		refused(t, &Dispatch{}, Start{Setup{Mode: Orchestrator, Agents: agents("a", name)}}, "which are reserved")
	}
}

// TestWaitsFirst checks that a waiting input comes before a newer one, also if another program's
// line closed the open conversation.
func TestWaitsFirst(t *testing.T) {
	s := story(t, Start{Setup{Mode: Orchestrator}}, UserInput{Text: "one"}, UserInput{Text: "two"})
	s.Phase, s.Open = Ready, nil // the state after a conversation_end of seed 002's own logger
	changes, err := s.Decide(machinetest.Noon, UserInput{Text: "three"})
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range changes {
		s.Apply(ch)
	}
	if s.Open == nil || s.Open.Input != "two" || len(s.Waiting) != 1 || s.Waiting[0].Text != "three" {
		t.Fatalf("open: %+v, waiting: %+v", s.Open, s.Waiting)
	}
}

// TestListsAreCopied checks that a dispatch copies lists, so that later changes by the caller have
// no effect.
func TestListsAreCopied(t *testing.T) {
	described, named := agents("a"), []string{"x.md"}
	s := story(t, Start{Setup{Mode: Orchestrator, Agents: described}}, UserInput{Text: "one", Named: named})
	s.decideAll(t, UserInput{Text: "two", Named: named})
	described[0].Name, named[0] = "other", "/etc"
	if !s.Knows("a") || s.Open.Named[0] != "x.md" || s.Waiting[0].Named[0] != "x.md" {
		t.Fatalf("the dispatch shares lists with its caller: %s", encode(t, *s))
	}
}

// TestInputOfAnEndedConversation checks that input for an ended conversation has no effect on the
// next one, whose tasks have the same numbers.
func TestInputOfAnEndedConversation(t *testing.T) {
	match := &Match{Agent: "a"}
	for name, in := range map[string]Input{
		"a task's end":      TaskEnded{Conversation: 1, Task: 1, OK: true, Result: "of the first"},
		"MAIN's end":        MainEnded{Conversation: 1, OK: true, Result: "of the first"},
		"an answer":         Respond{Conversation: 1, Text: "of the first", Over: true},
		"a lost session":    Interrupt{Conversation: 1, Why: "lost"},
		"a file":            Wrote{Conversation: 1, File: File{Path: "first"}},
		"a task's end, now": TaskEnded{Conversation: 3, Task: 1, OK: true},
	} {
		s := story(t, hosted(Interactive, "a", "b"), UserInput{Text: "one", Match: match}, Interrupt{},
			UserInput{Text: "two", Match: match})
		if got := s.decideAll(t, in); len(got) > 0 || s.Open.N != 2 {
			t.Errorf("%s changed the next conversation: %+v", name, got)
		}
		refused(t, s, Delegate{Conversation: 1, By: 1, Agent: "b", Text: "help"}, "conv_001 has ended")
		refused(t, s, Delegate{Conversation: 1, Agent: "b", Text: "do"}, "conv_001 has ended")
	}
	s := story(t, hosted(Orchestrator, "a"), UserInput{Text: "one", Match: match},
		TaskEnded{Conversation: 1, Task: 1, OK: true, Result: "so"})
	if answer, ok := s.Answer(); !ok || answer.Conversation != 1 {
		t.Fatalf("an answer for the open conversation has no effect: %+v", answer)
	}
}

// TestResultsOfOthersGoFirst checks that an undelivered result stays, regardless of how many
// results are delivered to other agents.
func TestResultsOfOthersGoFirst(t *testing.T) {
	s := story(t, hosted(Interactive, "a", "b", "c"), UserInput{Text: "x"}, Delegate{Agent: "a", Text: "do"},
		Delegate{Agent: "b", Text: "do"},
		MainEnded{OK: true}, TaskEnded{Task: 1, OK: true, Result: "of a"})
	for round := range roundsMax {
		for range 2 {
			s.decideAll(t, Delegate{Agent: "c", By: 2, Text: "help"})
			s.decideAll(t, TaskEnded{Task: s.Open.Asked, OK: true, Result: "of c"})
		}
		s.decideAll(t, TaskEnded{Task: 2, Round: round, OK: true})
	}
	s.decideAll(t, TaskEnded{Task: 2, Round: roundsMax, OK: true, Result: "of b"})
	if due := s.Due(); len(due) != 1 || len(due[0].Results) != 2 || due[0].Results[0].Text != "of a" {
		t.Fatalf("MAIN gets: %+v", due)
	}
}
