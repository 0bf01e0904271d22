package dispatch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// The scripts of testdata/*.script: the inputs of a dispatch, and below ---- the result. A line is
// a verb and words; k=v are options. To renew them: UPDATE=1 go test ./core/dispatch.
func TestStories(t *testing.T) {
	golden.Stories(t, "*.script", func(t *testing.T, story string) string {
		var out strings.Builder
		for i, chapter := range strings.Split(strings.TrimSpace(story), "\n\n") {
			if i > 0 {
				out.WriteString("\n\n")
			}
			said, _, _ := strings.Cut(chapter+"\n", "----\n")
			out.WriteString(said + "----\n" + strings.TrimSuffix(tellStory(t, said), "\n"))
		}
		return out.String() + "\n"
	})
}

// tellStory runs one block with a new dispatch.
func tellStory(t *testing.T, said string) string {
	var s Dispatch
	var out strings.Builder
	at := machinetest.Noon
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		at = at.Add(time.Second)
		if line == "host does it" {
			hostDoes(t, &s, at, &out)
			continue
		}
		changes, err := decide(t, &s, at, inputOf(t, line))
		show(&out, line, changes, err)
	}
	if c := s.Open; c != nil {
		fmt.Fprintf(&out, "= %s: %s, %d at work\n", c.ID(), s.State(), len(c.Tasks))
	} else {
		fmt.Fprintf(&out, "= %s %s\n", s.State(), s.Phase)
	}
	return out.String()
}

func show(out *strings.Builder, line string, changes []change.Change, err error) {
	switch {
	case err != nil:
		fmt.Fprintf(out, "%s: REFUSED %v\n", line, err)
	case len(changes) == 0:
		fmt.Fprintf(out, "%s: so already\n", line)
	}
	for _, ch := range changes {
		move, body := ch.From, change.As[Body](ch.Body)
		if ch.From != ch.To {
			move = strings.TrimSpace(ch.From + " -> " + ch.To)
		}
		fmt.Fprintf(out, "%-28s %-4s %s\n", move, ch.Row, strings.TrimSpace(ch.Trigger+"  "+body.Trigger))
		for _, e := range body.Entries {
			fmt.Fprintf(out, "  %s: %s %s\n", e.Kind, e.Who, e.Text)
		}
		if sum := body.Summary; sum != nil {
			fmt.Fprintf(out, "  messages.jsonl: %s %q %v %v\n", ConversationID(sum.Conversation), sum.Text, sum.Files, sum.Agents)
		}
		if r := body.Reply; r != nil {
			fmt.Fprintf(out, "  beside %s: %v %s\n", r.Message, r.OK, r.Text)
		}
		if a := body.Aside; a != nil {
			fmt.Fprintf(out, "  put aside: %s\n", a.Message)
		}
		if d := body.Denied; d != nil {
			fmt.Fprintf(out, "  denied: %s %s (%s), instead: %s\n", d.By, d.Tool, d.Row, d.Delegate)
		}
	}
}

// hostDoes does all due actions; every agent succeeds.
func hostDoes(t *testing.T, s *Dispatch, at time.Time, out *strings.Builder) {
	for range 20 {
		var in Input
		if answer, ready := s.Answer(); ready {
			in = answer
		} else if due := s.Due(); len(due) > 0 {
			w := due[0]
			fmt.Fprintf(out, "  host: %s told %s %q", w.Agent, w.Key(), w.Text)
			for _, r := range w.Results {
				fmt.Fprintf(out, " (%s: %s)", r.Agent, r.Text)
			}
			out.WriteString("\n")
			in = TaskEnded{Task: w.Task, Round: w.Round, OK: true, Result: w.Agent + " did it"}
			if w.Task == 0 {
				in = MainEnded{Round: w.Round, OK: true, Result: w.Agent + " answers"}
			}
		} else {
			return
		}
		changes, err := decide(t, s, at, in)
		show(out, fmt.Sprintf("%T", in), changes, err)
	}
	t.Fatal("the actions do not end")
}

// inputOf parses a line.
func inputOf(t *testing.T, line string) Input {
	t.Helper()
	var words []string
	opt := map[string]string{}
	for _, word := range strings.Fields(line) {
		if k, v, ok := strings.Cut(word, "="); ok {
			opt[k] = v
		} else {
			words = append(words, word)
		}
	}
	number := func(name string) uint64 {
		n, err := strconv.ParseUint(opt[name], 10, 64)
		if err != nil && opt[name] != "" {
			t.Fatalf("%s: %v", line, err)
		}
		return n
	}
	text := strings.Join(words[1:], " ")
	var match *Match
	if opt["fits"] != "" {
		match = &Match{Agent: opt["fits"], Score: 2}
		if opt["by"] != "" {
			match.Terms = strings.Split(opt["by"], "+")
		}
	}
	_, over := opt["over"]
	switch words[0] {
	case "start":
		return Start{Setup{
			Mode: Mode(words[1]), Host: Host(opt["host"]), Lead: opt["main"], Ranker: opt["ranker"], Path: "S",
			Agents: agents(words[2:]...),
		}}
	case "user":
		return UserInput{Text: text, Match: match, Over: over}
	case "delegate":
		return Delegate{Agent: words[1], Text: strings.Join(words[2:], " "), By: number("task"), Call: opt["call"]}
	case "seen":
		return Seen{Agent: words[1], Caller: opt["caller"]}
	case "done", "fails":
		return TaskEnded{
			Task: number("task"), Round: int(number("round")), Caller: opt["caller"], Call: opt["call"],
			OK: words[0] == "done", Result: text,
		}
	case "main":
		return MainEnded{Round: int(number("round")), OK: true, Result: text}
	case "answer":
		return Respond{Text: text, Over: over}
	case "deny":
		return Deny{
			Tool: words[1], Caller: opt["caller"], Task: number("task"), Delegate: opt["instead"], Row: opt["row"],
			Reason: "not here",
		}
	case "wrote":
		return Wrote{Caller: opt["caller"], Task: number("task"), File: File{Path: words[1]}}
	case "message":
		return Message{Name: words[1], Text: strings.Join(words[2:], " "), Match: match}
	case "lost":
		return Interrupt{Why: text}
	case "end":
		return End{Why: text}
	}
	t.Fatalf("unknown line: %s", line)
	return nil
}

// TestInCharge checks that permissions depend on the caller's id. A caller with an unknown id is
// MAIN (SPEC, decided pairs).
func TestInCharge(t *testing.T) {
	var s Dispatch
	for _, line := range []string{
		"start orchestrator a b host=claude", "user do over=1", "delegate a x call=c1", "delegate b y call=c2",
		"seen b caller=id-b", "seen a caller=id-a",
	} {
		if _, err := decide(t, &s, machinetest.Noon, inputOf(t, line)); err != nil {
			t.Fatal(err)
		}
	}
	for caller, want := range map[string]string{"": Main, "id-a": "a", "id-b": "b", "id-c": Main} {
		if agent, main := s.InCharge(caller); agent != want || main != (want == Main) {
			t.Errorf("%q acts as %s", caller, agent)
		}
	}
	if _, err := decide(t, &s, machinetest.Noon, TaskEnded{Caller: "id-a", OK: true}); err != nil {
		t.Fatal(err)
	}
	if agent, main := s.InCharge("id-a"); !main {
		t.Errorf("its task has ended, but it acts as %s", agent)
	}
	if got := s.State(); got != "b" || slices.Contains([]string{Main}, got) {
		t.Errorf("b does not work: %s", got)
	}
}
