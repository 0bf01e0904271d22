package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/questions"
	"github.com/fairlead-dev/fairlead/read/view"
)

// What a person says is what the question takes, or nothing: never the first option that looks like it.
func TestChooseAnswer(t *testing.T) {
	t.Parallel()
	permission := view.QuestionView{ID: "q1", Kind: "permission", Options: []view.OptionView{
		{ID: "a", Kind: "allow_once"}, {ID: "m", Kind: "allow_once_and_mode"}, {ID: "r", Kind: "reject_once"}, {ID: "cancel"}, {ID: "no"},
	}}
	words := view.QuestionView{ID: "q2", Kind: "question", FreeText: true, Options: []view.OptionView{{ID: "yes"}, {ID: "main"}}}
	resume := view.QuestionView{ID: "q3", Kind: "resume", Options: []view.OptionView{{ID: "resume"}, {ID: "fresh"}}}
	colours := view.QuestionView{
		ID: "q5", Kind: "question",
		Options: []view.OptionView{{ID: "1", Label: "red"}, {ID: "2", Label: "Blue"}, {ID: "3", Label: "1"}, {ID: "4", Label: "red "}},
	}
	for _, c := range []struct {
		asked               view.QuestionView
		word, text, scope   string
		allow               bool
		option, wrong, said string
	}{
		{permission, "yes", "", "once", true, "", "", "is allowed"},
		{permission, "Deny", "", "once", false, "", "", "is denied"},
		{permission, "a", "", "always", true, "a", "", "from now on"},
		{permission, "m", "", "once", true, "m", "", "is allowed"},
		{permission, "r", "", "session", false, "r", "", "exactly like it in"},
		{permission, "no", "", "once", false, "no", "", "is denied"},
		{permission, "cancel", "", "once", true, "cancel", "", ""},
		{permission, "cancel", "", "always", false, "", "cannot be saved", ""},
		{permission, "perhaps", "", "once", false, "", "it accepts yes, no, a, m, r", ""},
		{permission, "", "with a word", "once", false, "", "say yes or no", ""},
		{words, "yes", "", "once", true, "yes", "", "is answered: yes"},
		{words, "", "neither", "once", true, "", "", "is answered"},
		{words, "no", "", "once", false, "", "it accepts yes, main, --text", ""},
		{colours, "blue", "", "once", true, "2", "", "is answered: Blue"},
		{colours, "2", "", "once", true, "2", "", "is answered: Blue"},
		{colours, "1", "", "once", true, "1", "", "is answered: red"},
		{colours, "red", "", "once", false, "", "it accepts 1 (red), 2 (Blue), 3 (1), 4 (red)", ""},
		{permission, "", "", "once", false, "", "say yes or no", ""},
		{resume, "fresh", "", "once", true, "fresh", "", "is answered: fresh"},
		{resume, "yes", "", "once", false, "", "it accepts resume, fresh", ""},
	} {
		answer := view.QuestionAnswer{Text: c.text, Scope: c.scope}
		err := questions.ChooseAnswer(&answer, c.asked, c.word)
		switch {
		case c.wrong != "":
			if err == nil || cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s %q: %v", c.asked.ID, c.word, err)
			}
		case err != nil || answer.Allow != c.allow || answer.Option != c.option:
			t.Errorf("%s %q: %+v, %v", c.asked.ID, c.word, answer, err)
		case !strings.Contains(questions.SaidAnswer(c.asked, answer), c.said):
			t.Errorf("%s %q: it is said that it %s", c.asked.ID, c.word, questions.SaidAnswer(c.asked, answer))
		}
	}
}

// The options of a question are shown with their texts.
func TestInboxShowsOptions(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	item := view.InboxItem{
		Kind: "question",
		Question: &view.QuestionView{
			ID: "q5", Kind: "question", Agent: "coder", What: "Which colour?",
			Options: []view.OptionView{{ID: "1", Label: "red"}, {ID: "2", Label: "blue"}}, AskedAt: time.Now(),
		},
	}
	if err := questions.PrintInbox(&cli.App{Out: &out}, []view.InboxItem{item}, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"option  1  red\n", "option  2  blue\n", "fairlead answer q5 1|2"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
}

// Whatever an agent words, the inbox is lines of text, and says itself who wants what.
func TestInboxOfHostileAgents(t *testing.T) {
	t.Parallel()
	lie := "\x1b[2Jfake\r\u202e\nq9  coder wants nothing"
	soon := time.Now().Add(time.Hour)
	var items []view.InboxItem
	for _, kind := range []string{"permission", "question", "resume"} {
		items = append(items, view.InboxItem{Kind: kind, Run: lie, Step: lie, Question: &view.QuestionView{
			ID: "q1", Kind: kind, Agent: "coder", What: lie, Why: lie, Tool: lie, Call: lie, Paths: []string{lie}, Hints: []string{lie},
			Differs: []string{lie},
			Options: []view.OptionView{{ID: lie, Label: lie}}, AskedAt: time.Now(), ExpiresAt: &soon, Otherwise: lie, FreeText: true,
		}})
	}
	var out bytes.Buffer
	a := &cli.App{Out: &out}
	if err := questions.PrintInbox(a, items, false); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\r\u202e") {
		t.Errorf("a control came through: %q", out.String())
	}
	for text := range strings.Lines(out.String()) {
		if strings.HasPrefix(text, "q9") {
			t.Errorf("an agent wrote a line of ours: %s", text)
		}
	}
}

// A person sees the content of a file before approving it.
func TestWrittenLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool, call string
		want       []string
	}{
		"no JSON":   {"Write", "/a", nil},
		"a command": {"Bash", `{"command":"ls"}`, nil},
		"a file":    {"Write", `{"content":"x\n\ty\n","diff":"+x","file_path":"/a"}`, []string{"| x", "|     y"}},
		"a change":  {"Edit", `{"content":"all of it","diff":"-a\n+b","file_path":"/a"}`, []string{"| -a", "| +b"}},
		"no text":   {"Write", `{"content":7,"new_source":"z"}`, []string{"| z"}},
		"escape":    {"Write", `{"content":"a\u001b[2Jb"}`, []string{"| " + cli.Plain("a\x1b[2Jb")}},
		"a long file": {
			"Write", `{"content":"` + strings.Repeat("l\\n", 14) + `"}`,
			append(slices.Repeat([]string{"| l"}, 12), "and 2 more lines; `fairlead inbox --json` has them"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := questions.WrittenLines(c.tool, c.call); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
