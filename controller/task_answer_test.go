package controller

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

// answerFlow is a workflow for tasks in which a person is asked after the work.
const answerFlow = `name: task
steps:
  - {id: work, agent: "{agent}", prompt: "{prompt}", continue_conversation: true, report_optional: true}
  - {id: approve, agent: "{reviewer}", prompt: "{review}", needs: [work], human_in_the_loop: true, loop_back_to: work}
`

func refusedTask(t *testing.T, err error, want string) {
	t.Helper()
	var refusal *machine.Refusal
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Reason, want) {
		t.Errorf("%v, want a refusal: %s", err, want)
	}
}

// TestAnswerIsForWhatWasShown checks that an answer applies to what the person was shown. If
// something else is shown by then, it is refused and nothing is lost. Comments are kept until a
// request sends them, once.
func TestAnswerIsForWhatWasShown(t *testing.T) {
	t.Parallel()
	var prompts []string
	taskBubble(t, answerFlow, func(b *bubble, n int, prompt string, s *fakeSession) {
		prompts = append(prompts, prompt)
		b.write("b.txt", strings.Repeat("b\n", n))
		if n > 1 {
			answers, err := filepath.Glob(filepath.Join(b.conf.Dir, ".agents", "runs", "T1", "manual_inputs", "*"))
			if err != nil || len(answers) != 1 {
				b.t.Errorf("the answers are %q, %v", answers, err)
			}
			for _, name := range answers { // the disk has another clock, by which the answer would be newer than the next question
				if err := os.Chtimes(name, time.Now(), time.Now()); err != nil {
					b.t.Error(err)
				}
			}
			s.lasts(time.Minute)
		}
		s.say("stop ok")
	}, func(*bubble, int, string) string { return `{"findings": []}` }, func(t *testing.T, b *bubble) {
		ctx, e := t.Context(), func() *Supervisor { return b.engine }
		shows := func(text string) string {
			commit := gitIn(t, b.conf.Dir, "commit-tree", "-p", "HEAD", "-m", text, "HEAD^{tree}")
			gitIn(t, b.conf.Dir, "update-ref", "refs/fairlead/tasks/T1.shown", commit)
			return commit
		}
		refused := func(err error, want string) {
			t.Helper()
			refusedTask(t, err, want)
		}
		b.start()
		b.give("Write the file b")
		b.after(30 * time.Second)
		if v := b.runView("T1"); v.Task.Status != view.TaskNeedsYou {
			t.Fatalf("%+v", v)
		}
		before := shows("first")
		now := shows("second")

		_, err := e().MergeTask(ctx, human, "T1", before)
		refused(err, "it was changed since you looked")
		_, err = e().RequestTask(ctx, human, "T1", "", now)
		refused(err, "there is nothing to send")
		for _, text := range []string{"no: honour the context", "and why?"} {
			if _, err := e().AddComment(ctx, "T1", view.TaskComment{File: "b.txt", Line: 2, Text: text}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = e().RequestTask(ctx, human, "T1", "also the docs", before)
		refused(err, "it was changed since you looked")
		if left, err := e().Comments(ctx, "T1"); err != nil || len(left) != 2 {
			t.Errorf("after a refusal the comments are %+v, %v", left, err)
		}

		if _, err := e().RequestTask(ctx, human, "T1", "also the docs", now); err != nil {
			t.Fatal(err)
		}
		b.after(30 * time.Second)
		if left, err := e().Comments(ctx, "T1"); err != nil || len(left) > 0 {
			t.Errorf("after they were sent the comments are %+v, %v", left, err)
		}
		if len(prompts) != 2 || strings.Count(prompts[1], "b.txt:2: no: honour the context") != 1 || !strings.Contains(prompts[1], "also the docs") || !strings.Contains(prompts[1], "b.txt:2: and why?") {
			t.Fatalf("the agent received %q", prompts)
		}
		_, err = e().MergeTask(ctx, human, "T1", now)
		refused(err, "it does not wait for your answer now")
		_, err = e().RequestTask(ctx, human, "T1", "more", "")
		refused(err, "it does not wait for your answer now")

		b.after(2 * time.Minute)
		if _, err := e().MergeTask(ctx, human, "T1", now); err != nil {
			t.Fatal(err)
		}
		b.after(time.Minute)
		if v := b.runView("T1"); v.Status != "completed" || v.Task.Status != view.TaskDone {
			t.Errorf("%+v", v)
		}
	})
}

// TestTaskComments checks that comments have numbers that are not reused while they exist. Names
// outside of the repository, and a comment that was removed, are refused.
func TestTaskComments(t *testing.T) {
	t.Parallel()
	taskBubble(t, answerFlow, func(_ *bubble, _ int, _ string, s *fakeSession) { s.say("stop ok") }, func(*bubble, int, string) string { return `{"findings": []}` }, func(t *testing.T, b *bubble) {
		ctx := t.Context()
		b.start()
		b.give("Write the file b")
		for _, text := range []string{"no", "remove me", "and why?"} {
			if _, err := b.engine.AddComment(ctx, "T1", view.TaskComment{File: "b.txt", Line: 2, Text: text}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.engine.RemoveComment(ctx, "T1", 2); err != nil {
			t.Error(err)
		}
		if _, err := b.engine.ChangeComment(ctx, "T1", 1, "no: honour the context"); err != nil {
			t.Error(err)
		}
		_, err := b.engine.AddComment(ctx, "T1", view.TaskComment{File: "../b.txt", Line: 1, Text: "outside"})
		refusedTask(t, err, "not one of the repository")
		_, err = b.engine.ChangeComment(ctx, "T1", 3, " ")
		refusedTask(t, err, "a comment has 1 to")
		if _, err := b.engine.AddComment(ctx, "T1", view.TaskComment{File: "b.txt", Text: "last"}); err != nil {
			t.Error(err)
		}
		want := []view.TaskComment{
			{ID: 1, File: "b.txt", Line: 2, Text: "no: honour the context"}, {ID: 3, File: "b.txt", Line: 2, Text: "and why?"}, {ID: 4, File: "b.txt", Text: "last"},
		}
		if left, err := b.engine.Comments(ctx, "T1"); err != nil || !slices.Equal(left, want) {
			t.Errorf("comments: %+v, %v", left, err)
		}
		_, gone := b.engine.ChangeComment(ctx, "T1", 2, "gone")
		_, twice := b.engine.RemoveComment(ctx, "T1", 2)
		_, other := b.engine.Comments(ctx, "T2")
		for name, err := range map[string]error{"changed after it was removed": gone, "removed twice": twice, "another task": other} {
			var unknown *team.Unknown
			if !errors.As(err, &unknown) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
