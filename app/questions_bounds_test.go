package app

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/question"
)

// Q2, Q4: an agent's own bounds have priority over patterns, saved answers and people. A call that
// cannot be judged goes to a person, and a timeout denies it, regardless of `otherwise`.
func TestPermissionByBounds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ call, want, rows, rule string }{
		"within":     {`Write {"file_path":"src/a.go","content":"x"}`, "yes", "Q2 Q6", "allow Write(**)"},
		"not listed": {`Write {"file_path":"a.go","content":"x"}`, "no", "Q2 Q6", "bounds: a.go: can_write does not list it"},
		"listed as denied": {
			`Edit {"file_path":"src/secret/a.go","old_string":"x"}`, "no", "Q2 Q6",
			"bounds: src/secret/a.go: cannot_write lists src/secret",
		},
		"X10 first":           {`Write {"file_path":".git/config","content":"x"}`, "no", "Q2 Q6", "X10"},
		"a program":           {`Bash {"command":"go vet ./... && npm test"}`, "no", "Q2 Q6", "bounds: can_execute does not list npm"},
		"a redirect":          {`Bash {"command":"go vet > out.txt"}`, "no", "Q2 Q6", "bounds: out.txt: can_write does not list it"},
		"a pattern names it":  {`Bash {"command":"go vet"}`, "yes", "Q2 Q6", "allow Bash(go *)"},
		"no pattern names it": {`Bash {"command":"gofmt -l ."}`, "yes", "Q1 Q4 Q6", ""},
		"cannot be judged":    {`Bash {"command":"go vet > $OUT"}`, "no", "Q1 Q4 Q6", ""},
		"cut, not listed":     {`Bash cut=command {"command":"npm test"}`, "no", "Q2 Q6", "bounds: can_execute does not list npm"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "coder", func(t *testing.T, b *bubble) {
				r := &replies{}
				b.host.play = r.asksFor(tt.call)
				b.agent("coder").Permissions = config.Permissions{
					Allow: []string{"Write(**)", "Bash(go *)", "Bash"}, Timeout: 10 * time.Minute, Otherwise: config.OtherwiseAllow,
					CanWrite: []string{"src/**"}, CannotWrite: []string{"src/secret"}, CanExecute: []string{"go", "gofmt"},
				}
				b.start()
				b.command("coder", "run_once")
				b.after(11 * time.Minute)
				b.checkReceived(r, "coder-1", tt.want)
				q := b.replayed().Questions.Questions["q1"]
				if got := b.rows("question/q1"); got != tt.rows || q == nil || !strings.HasPrefix(q.Rule, tt.rule) {
					t.Errorf("rows %s, answer %+v", got, q)
				}
				if tt.want == "no" && tt.rule == "" && !strings.Contains(q.Why, "only known when it runs") {
					t.Errorf("the question says %q", q.Why)
				}
			})
		})
	}
}

// TestBoundsBeforeSavedAnswers checks that newer bounds have priority over an answer that a person
// saved for always.
func TestBoundsBeforeSavedAnswers(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		r := &replies{}
		b.host.play = r.asksFor(makeCall)
		b.agent("coder").Permissions = config.Permissions{Timeout: time.Hour}
		b.start()
		b.command("coder", "run_once")
		b.settle()
		b.answer(b.open1(question.Permission).ID, view.QuestionAnswer{Allow: true, Scope: string(question.Always)})
		b.checkReceived(r, "coder-1", "yes")
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.agent("coder").Permissions.CannotExecute = []string{"make"}
		b.start()
		b.command("coder", "run_once")
		b.after(time.Minute)
		b.checkReceived(r, "coder-2", "no")
	})
}

// D9: an agent that works in a dispatch keeps to its own bounds, too; the narrower ones apply.
func TestBoundsInASession(t *testing.T) {
	t.Parallel()
	yaml := strings.Replace(sessionYAML, `engineer: {`, `engineer: {permissions: {cannot_execute: [make], cannot_write: ["*.secret"]}, `, 1)
	files := map[string]string{
		"coordinator.yaml": sessionScripts["coordinator.yaml"], "reviewer.yaml": sessionScripts["reviewer.yaml"],
		"engineer.yaml": `
steps:
  - expect_prompt
  - {ask: "May I make it?", tool: Bash, args: {command: "make"}}
  - {run: 'if [ "$ANSWER" = allow ]; then echo "It was made."; else echo "I may not make it."; fi', says: true}
  - {ask: "May I run it?", tool: Bash, args: {command: "go vet"}}
  - {run: 'if [ "$ANSWER" = allow ]; then echo "It was run."; else echo "I may not run it."; fi', says: true}
  - {ask: "May I hide it?", tool: Bash, args: {command: "echo x > $WHERE"}}
  - {run: 'if [ "$ANSWER" = allow ]; then echo "It was hidden."; else echo "I may not hide it."; fi', says: true}
`,
	}
	w := newWorld(t, yaml, files)
	f := w.session(dispatch.Orchestrator)
	in := dispatch.UserInput{Text: "Write a Python script that says hello", Match: &dispatch.Match{Agent: "engineer", Score: 1}}
	if _, _, err := f.Do(time.Now(), human, in); err != nil {
		t.Fatal(err)
	}
	dialogue := w.answered(f, 1)
	holds(t, "the dialogue", dialogue, "I may not make it.", "It was run.", "I may not hide it.")
	view, err := w.engine.Dispatch.Folder(context.Background(), f.Name())
	if err != nil {
		t.Fatal(err)
	}
	denials := denialsIn(t, view.Path)
	if len(denials) != 2 || denials[0].Denied.Row != "D9" || !strings.Contains(denials[0].Denied.Reason, "fairlead.yaml") {
		t.Errorf("the denials are %+v", denials)
	}
}
