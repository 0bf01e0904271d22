package app

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/read/view"
)

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

// asksAbout is what the open question of a task shows.
func (b *bubble) asksAbout(id string) view.TaskAsked {
	b.t.Helper()
	v := b.runView(id)
	if v.Task.Status != view.TaskNeedsYou || v.Task.Asked == nil {
		b.t.Fatalf("no question is open: %+v", v.Task)
	}
	return *v.Task.Asked
}

// TestAnswerIsForWhatWasShown checks that an answer applies to what the open question shows, as the journal has it. An
// answer that names something else is refused, and nothing is lost. Files and refs that any program can change decide
// nothing. Comments are kept until a request sends them, once.
func TestAnswerIsForWhatWasShown(t *testing.T) {
	t.Parallel()
	var prompts []string
	taskBubble(t, func(b *bubble, n int, prompt string, s *fakeSession) {
		prompts = append(prompts, prompt)
		b.write("b.txt", strings.Repeat("b\n", n))
		if n > 1 {
			s.lasts(time.Minute)
		}
		s.say("stop ok")
	}, nil, func(t *testing.T, b *bubble) {
		ctx, e := t.Context(), func() *App { return b.engine }
		b.put("other.txt", "x\n")
		gitIn(t, b.conf.Dir, "add", "other.txt")
		otherTree := gitIn(t, b.conf.Dir, "write-tree")
		other := gitIn(t, b.conf.Dir, "commit-tree", "-p", "HEAD", "-m", "other", otherTree)
		gitIn(t, b.conf.Dir, "rm", "--quiet", "--cached", "other.txt")
		refused := func(err error, want string) {
			t.Helper()
			refusedTask(t, err, want)
		}
		b.start()
		b.give("Write the file b")
		b.after(30 * time.Second)
		first := b.asksAbout("T1")
		if gitIn(t, b.conf.Dir, "show", first.Tree+":b.txt") != "b" || gitIn(t, b.conf.Dir, "rev-parse", first.Commit+"^{tree}") != first.Tree ||
			first.From != gitIn(t, b.conf.Dir, "rev-parse", "main") ||
			!slices.Equal(first.Told, []string{"the last answer of its agent ended without a word"}) {
			t.Fatalf("asked %+v", first)
		}
		for _, tamper := range [][]string{
			{"update-ref", "refs/fairlead/tasks/T1.shown", other},
			{"update-ref", "refs/fairlead/tasks/T1", other},
		} {
			gitIn(t, b.conf.Dir, tamper...)
		}
		b.put(".agents/runs/T1/shown", otherTree+"\n")

		_, err := e().Tasks.MergeTask(ctx, human, "T1", other, "", "")
		refused(err, "it was changed since you looked")
		_, err = e().Tasks.MergeTask(ctx, human, "T1", "", otherTree, "")
		refused(err, "Look at it again")
		_, err = e().Tasks.MergeTask(ctx, human, "T1", "", first.Tree[:11], "")
		refused(err, "too short")
		_, err = e().Runs.Answer(ctx, human, "T1", "approve", view.StepAnswer{Tree: otherTree[:12]})
		refused(err, "Look at it again")
		_, err = e().Tasks.RequestTask(ctx, human, "T1", "", first.Commit)
		refused(err, "there is nothing to send")
		for _, text := range []string{"no: honour the context", "and why?"} {
			if _, err := e().Tasks.AddComment(ctx, "T1", view.TaskComment{File: "b.txt", Line: 2, Text: text}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = e().Tasks.RequestTask(ctx, human, "T1", "also the docs", other)
		refused(err, "it was changed since you looked")
		if left, err := e().Tasks.Comments(ctx, "T1"); err != nil || len(left) != 2 {
			t.Errorf("after a refusal the comments are %+v, %v", left, err)
		}

		if _, err := e().Tasks.RequestTask(ctx, human, "T1", "also the docs", first.Commit); err != nil {
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
		_, err = e().Tasks.MergeTask(ctx, human, "T1", first.Commit, "", "")
		refused(err, "it does not wait for your answer now")
		_, err = e().Tasks.RequestTask(ctx, human, "T1", "more", "")
		refused(err, "it does not wait for your answer now")

		b.after(2 * time.Minute)
		second := b.asksAbout("T1")
		_, err = e().Tasks.MergeTask(ctx, human, "T1", first.Commit, "", "")
		refused(err, "it was changed since you looked") // the question of the first round
		if _, err := e().Tasks.MergeTask(ctx, human, "T1", "", second.Tree[:12], ""); err != nil {
			t.Fatal(err)
		}
		b.after(time.Minute)
		v := b.runView("T1")
		if v.Status != "completed" || v.Task.Status != view.TaskDone || v.Task.Asked != nil ||
			gitIn(t, b.conf.Dir, "show", "main:b.txt") != "b\nb" {
			t.Errorf("%+v", v)
		}
		if got := v.Steps[3].Answer; got == nil ||
			*got != (view.StepAnswered{
				By: human.ID, Tree: second.Tree, Named: true,
				Words: "by " + human.ID + ", for tree " + second.Tree[:12],
			}) {
			t.Errorf("the record: %+v", got)
		}
	})
}

// TestApprovalWithoutHash checks that an order without a hash means what the question shows when it arrives, and that its
// record says so. A file approves no task: it is refused once, with the reason, and has no effect.
func TestApprovalWithoutHash(t *testing.T) {
	t.Parallel()
	taskBubble(t, func(_ *bubble, _ int, _ string, s *fakeSession) { s.say("stop ok") }, nil,
		func(t *testing.T, b *bubble) {
			b.start()
			b.give("Write the file b")
			b.after(30 * time.Second)
			for range 3 {
				b.put(".agents/runs/T1/manual_inputs/T1__approve.json", `{"approved": true, "by": "alice"}`)
				b.after(10 * time.Second)
			}
			v := b.runView("T1")
			if v.Task.Status != view.TaskNeedsYou || !strings.Contains(v.Steps[3].BadInput, "a task is not approved by a file") ||
				v.Steps[3].ManualInputPath != "" {
				t.Fatalf("%+v\n%+v", v.Task, v.Steps[1])
			}
			tree, said := b.asksAbout("T1").Tree, 0
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
			if got := v.Steps[3].Answer; v.Task.Status != view.TaskDone || got == nil || got.Named || got.ByFile || got.Tree != tree ||
				!strings.Contains(got.Words, "no hash given") {
				t.Errorf("%s, the record: %+v", v.Task.Status, got)
			}
		})
}

// TestTaskComments checks that comments have numbers that are not reused while they exist. Names
// outside of the repository, and a comment that was removed, are refused.
func TestTaskComments(t *testing.T) {
	t.Parallel()
	taskBubble(t, func(_ *bubble, _ int, _ string, s *fakeSession) { s.say("stop ok") }, nil,
		func(t *testing.T, b *bubble) {
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
