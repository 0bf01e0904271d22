package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/read/view"
)

// answerFlow is a workflow for tasks in which a person is asked after the work.
const answerFlow = `name: task
steps:
  - {id: work, agent: "{agent}", prompt: "{prompt}", continue_conversation: true, report_optional: true}
  - {id: approve, agent: "{reviewer}", prompt: "{review}", needs: [work], human_in_the_loop: true, loop_back_to: work}
`

func refusedTask(t *testing.T, err error, want string) {
	t.Helper()
	var refusal *table.Refusal
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Reason, want) {
		t.Errorf("%v, want a refusal: %s", err, want)
	}
}

// put writes a file of the workspace.
func (b *bubble) put(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.conf.Dir, name), []byte(text), 0o600); err != nil {
		b.t.Error(err)
	}
}

// asksAbout is the report of a step that shows a commit to a person.
func asksAbout(commit, tree, from string) string {
	return fmt.Sprintf(`{"schema": "run_report@v0", "run_id": "T1", "step_id": "approve", "agent": "critic", "status": "COMPLETED", "findings": [],
"started_at": "2026-11-28T10:00:00Z", "ended_at": "2026-11-28T10:00:01Z", "metrics": {"shown_commit": %q, "shown_tree": %q, "shown_from": %q}}`, commit, tree, from)
}

// TestAnswerIsForWhatWasShown checks that an answer applies to what the open question shows, as the journal has it. An
// answer that names something else is refused, and nothing is lost. Files and refs that any program can change decide
// nothing. Comments are kept until a request sends them, once.
func TestAnswerIsForWhatWasShown(t *testing.T) {
	t.Parallel()
	var prompts, commits, trees []string
	taskBubble(t, answerFlow, func(b *bubble, n int, prompt string, s *fakeSession) {
		prompts = append(prompts, prompt)
		b.write("b.txt", strings.Repeat("b\n", n))
		if n > 1 {
			s.lasts(time.Minute)
		}
		s.say("stop ok")
	}, func(b *bubble, n int, _ string) string { return asksAbout(commits[n-1], trees[n-1], commits[0]) }, func(t *testing.T, b *bubble) {
		ctx, e := t.Context(), func() *App { return b.engine }
		for _, name := range []string{"c.txt", "d.txt", "e.txt"} {
			b.put(name, "x\n")
			gitIn(t, b.conf.Dir, "add", name)
			tree := gitIn(t, b.conf.Dir, "write-tree")
			commits, trees = append(commits, gitIn(t, b.conf.Dir, "commit-tree", "-p", "HEAD", "-m", name, tree)), append(trees, tree)
		}
		refused := func(err error, want string) {
			t.Helper()
			refusedTask(t, err, want)
		}
		b.start()
		b.give("Write the file b")
		b.after(30 * time.Second)
		if v := b.runView("T1"); v.Task.Status != view.TaskNeedsYou || v.Task.Asked == nil ||
			!reflect.DeepEqual(*v.Task.Asked, view.TaskAsked{
				Tree: trees[0], Commit: commits[0], From: commits[0], Told: []string{"the last answer of its agent ended without a word"},
			}) {
			t.Fatalf("%+v, asked %+v", v.Task, v.Task.Asked)
		}
		for _, tamper := range [][]string{
			{"update-ref", "refs/fairlead/tasks/T1.shown", commits[2]},
			{"update-ref", "refs/fairlead/tasks/T1", commits[2]},
		} {
			gitIn(t, b.conf.Dir, tamper...)
		}
		b.put(".agents/runs/T1/shown", trees[2]+"\n")

		_, err := e().Tasks.MergeTask(ctx, human, "T1", commits[2], "", "")
		refused(err, "it was changed since you looked")
		_, err = e().Tasks.MergeTask(ctx, human, "T1", "", trees[2], "")
		refused(err, "Look at it again")
		_, err = e().Tasks.MergeTask(ctx, human, "T1", "", trees[0][:11], "")
		refused(err, "too short")
		_, err = e().Runs.Answer(ctx, human, "T1", "approve", view.StepAnswer{Tree: trees[2][:12]})
		refused(err, "Look at it again")
		_, err = e().Tasks.RequestTask(ctx, human, "T1", "", commits[0])
		refused(err, "there is nothing to send")
		for _, text := range []string{"no: honour the context", "and why?"} {
			if _, err := e().Tasks.AddComment(ctx, "T1", view.TaskComment{File: "b.txt", Line: 2, Text: text}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = e().Tasks.RequestTask(ctx, human, "T1", "also the docs", commits[2])
		refused(err, "it was changed since you looked")
		if left, err := e().Tasks.Comments(ctx, "T1"); err != nil || len(left) != 2 {
			t.Errorf("after a refusal the comments are %+v, %v", left, err)
		}

		if _, err := e().Tasks.RequestTask(ctx, human, "T1", "also the docs", commits[0]); err != nil {
			t.Fatal(err)
		}
		b.after(30 * time.Second)
		left, err := e().Tasks.Comments(ctx, "T1")
		if err != nil || len(left) != 2 || left[0].Sent != 1 || left[1].Sent != 1 {
			t.Errorf("after they were sent the comments are %+v, %v", left, err)
		}
		if len(prompts) != 2 || strings.Count(prompts[1], "b.txt:2: no: honour the context") != 1 ||
			!strings.Contains(prompts[1], "also the docs") || !strings.Contains(prompts[1], "b.txt:2: and why?") {
			t.Fatalf("the agent received %q", prompts)
		}
		_, err = e().Tasks.MergeTask(ctx, human, "T1", commits[0], "", "")
		refused(err, "it does not wait for your answer now")
		_, err = e().Tasks.RequestTask(ctx, human, "T1", "more", "")
		refused(err, "it does not wait for your answer now")

		b.after(2 * time.Minute)
		_, err = e().Tasks.MergeTask(ctx, human, "T1", commits[0], "", "")
		refused(err, "it was changed since you looked") // the question of the first round
		if _, err := e().Tasks.MergeTask(ctx, human, "T1", "", trees[1][:12], ""); err != nil {
			t.Fatal(err)
		}
		b.after(time.Minute)
		v := b.runView("T1")
		if v.Status != "completed" || v.Task.Status != view.TaskDone || v.Task.Asked != nil {
			t.Errorf("%+v", v)
		}
		if got := v.Steps[1].Answer; got == nil ||
			*got != (view.StepAnswered{
				By: human.ID, Tree: trees[1], Named: true,
				Words: "by " + human.ID + ", for tree " + trees[1][:12],
			}) {
			t.Errorf("the record: %+v", got)
		}
	})
}

// TestApprovalWithoutHash checks that an order without a hash means what the question shows when it arrives, and that its
// record says so. A file approves no task: it is refused once, with the reason, and has no effect.
func TestApprovalWithoutHash(t *testing.T) {
	t.Parallel()
	commit, tree := "", ""
	taskBubble(t, answerFlow, func(_ *bubble, _ int, _ string, s *fakeSession) { s.say("stop ok") },
		func(*bubble, int, string) string { return asksAbout(commit, tree, commit) }, func(t *testing.T, b *bubble) {
			commit, tree = gitIn(t, b.conf.Dir, "rev-parse", "HEAD"), gitIn(t, b.conf.Dir, "rev-parse", "HEAD^{tree}")
			b.start()
			b.give("Write the file b")
			b.after(30 * time.Second)
			for range 3 {
				b.put(".agents/runs/T1/manual_inputs/T1__approve.json", `{"approved": true, "by": "alice"}`)
				b.after(10 * time.Second)
			}
			v := b.runView("T1")
			if v.Task.Status != view.TaskNeedsYou || !strings.Contains(v.Steps[1].BadInput, "a task is not approved by a file") ||
				v.Steps[1].ManualInputPath != "" {
				t.Fatalf("%+v\n%+v", v.Task, v.Steps[1])
			}
			said := 0
			for _, rec := range b.history() {
				if rec.Trigger == string(workflow.AnswerFaulty) {
					said++
				}
			}
			if said != 1 {
				t.Errorf("the journal says %d times that a file has no effect", said)
			}
			if _, err := b.engine.Tasks.MergeTask(t.Context(), human, "T1", "", "", ""); err != nil {
				t.Fatal(err)
			}
			b.after(time.Minute)
			v = b.runView("T1")
			if got := v.Steps[1].Answer; v.Task.Status != view.TaskDone || got == nil || got.Named || got.ByFile || got.Tree != tree ||
				!strings.Contains(got.Words, "no hash given") {
				t.Errorf("%s, the record: %+v", v.Task.Status, got)
			}
		})
}

// TestTaskComments checks that comments have numbers that are not reused while they exist. Names
// outside of the repository, and a comment that was removed, are refused.
func TestTaskComments(t *testing.T) {
	t.Parallel()
	taskBubble(t, answerFlow, func(_ *bubble, _ int, _ string, s *fakeSession) { s.say("stop ok") },
		func(*bubble, int, string) string { return `{"findings": []}` }, func(t *testing.T, b *bubble) {
			ctx := t.Context()
			b.start()
			b.give("Write the file b")
			for _, text := range []string{"no", "remove me", "and why?"} {
				if _, err := b.engine.Tasks.AddComment(ctx, "T1", view.TaskComment{File: "b.txt", Line: 2, Text: text}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := b.engine.Tasks.RemoveComment(ctx, "T1", 2); err != nil {
				t.Error(err)
			}
			if _, err := b.engine.Tasks.ChangeComment(ctx, "T1", 1, "no: honour the context", nil); err != nil {
				t.Error(err)
			}
			_, err := b.engine.Tasks.AddComment(ctx, "T1", view.TaskComment{File: "../b.txt", Line: 1, Text: "outside"})
			refusedTask(t, err, "not one of the repository")
			_, err = b.engine.Tasks.ChangeComment(ctx, "T1", 3, " ", nil)
			refusedTask(t, err, "a comment has 1 to")
			if _, err := b.engine.Tasks.AddComment(ctx, "T1", view.TaskComment{File: "b.txt", Text: "last"}); err != nil {
				t.Error(err)
			}
			want := []view.TaskComment{
				{ID: 1, File: "b.txt", Line: 2, Text: "no: honour the context"},
				{ID: 3, File: "b.txt", Line: 2, Text: "and why?"},
				{ID: 4, File: "b.txt", Text: "last"},
			}
			left, err := b.engine.Tasks.Comments(ctx, "T1")
			if err != nil || len(left) != len(want) {
				t.Fatalf("comments: %+v, %v", left, err)
			}
			for i, is := range want {
				if got := left[i]; got.ID != is.ID || got.File != is.File || got.Line != is.Line || got.Text != is.Text || got.Round != 1 ||
					got.Sent != 0 || got.State != "open" {
					t.Errorf("comment %d: %+v", is.ID, got)
				}
			}
			_, gone := b.engine.Tasks.ChangeComment(ctx, "T1", 2, "gone", nil)
			_, twice := b.engine.Tasks.RemoveComment(ctx, "T1", 2)
			_, other := b.engine.Tasks.Comments(ctx, "T2")
			for name, err := range map[string]error{"changed after it was removed": gone, "removed twice": twice, "another task": other} {
				var unknown *team.Unknown
				if !errors.As(err, &unknown) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
}
