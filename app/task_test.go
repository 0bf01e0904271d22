package app

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
)

// taskBubble is a bubble in a repository, in which agent coder works and agent critic, if it is not nil, reviews. Each
// receives the number of its session and its prompt. The result of critic is its answer. The steps of the program's own
// do what they do in their processes.
func taskBubble(t *testing.T, coder func(b *bubble, n int, prompt string, s *fakeSession),
	critic func(b *bubble, n int, prompt string) string, test func(t *testing.T, b *bubble),
) {
	inBubble(t, "coder critic", func(t *testing.T, b *bubble) {
		dir, err := filepath.EvalSymlinks(filepath.Dir(b.conf.Agents[0].Workspace))
		if err != nil {
			t.Fatal(err)
		}
		b.conf.Dir = dir
		gitIn(t, dir, "init", "--quiet", "-b", "main")
		gitIn(t, dir, "config", "user.name", "A Person")
		gitIn(t, dir, "config", "user.email", "person@example.invalid")
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("a\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		gitIn(t, dir, "add", "a.txt")
		gitIn(t, dir, "commit", "--quiet", "-m", "first")
		b.conf.Tasks = config.Tasks{Land: "squash", Branch: config.TaskBranch}
		if critic != nil {
			b.conf.Tasks.Reviewer = "critic"
		}
		coders, critics := 0, 0
		b.conversing(config.ResumeInterrupted, func(s *fakeSession) {
			text, _, ok := s.next(time.Hour)
			if !ok {
				return
			}
			if agentIn(s.id) == "coder" {
				coders++
				coder(b, coders, text, s)
				return
			}
			critics++
			s.say("<<<RUN_REPORT_JSON")
			s.say("%s", critic(b, critics, text))
			s.say("RUN_REPORT_JSON>>>")
			s.say("stop ok")
		})
		b.driver.resumes = true
		agents := b.host.play
		b.host.play = func(s *fakeSession) {
			if step, of, is := strings.Cut(s.id, "@"); is {
				id, _, _ := strings.Cut(of, "-")
				b.ownStep(s, id, step)
				return
			}
			agents(s)
		}
		test(t, b)
	})
}

// land approves what a task shows, and waits until it is done.
func (b *bubble) land(id string) {
	b.t.Helper()
	if _, err := b.engine.Tasks.MergeTask(b.t.Context(), human, id, "", "", ""); err != nil {
		b.t.Fatal(err)
	}
	b.after(time.Minute)
	if v := b.runView(id); v.Task.Status != view.TaskDone {
		b.t.Fatalf("%+v", v)
	}
}

// ownStep does a step of a task that is the program's own.
func (b *bubble) ownStep(s *fakeSession, id, step string) {
	at, err := task.Load(filepath.Join(b.conf.Dir, ".agents", "runs", id, task.FileName))
	if err == nil {
		switch step {
		case task.StepPrepare:
			err = at.Prepare(b.t.Context(), io.Discard)
		case task.StepCheck:
			err = at.Check(b.t.Context(), io.Discard)
		}
	}
	if err != nil {
		b.t.Errorf("step %s: %v", step, err)
	}
	now := time.Now().UTC().Format(time.RFC3339)
	s.say("<<<RUN_REPORT_JSON")
	s.say(`{"schema": "run_report@v0", "run_id": %q, "step_id": %q, "agent": %q, "status": "COMPLETED", "started_at": %q, "ended_at": %q}`,
		id, step, step, now, now)
	s.say("RUN_REPORT_JSON>>>")
	s.exit(0)
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.invalid"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (b *bubble) tree() string { return filepath.Join(b.conf.Dir, ".agents", "worktrees", "T1") }

func (b *bubble) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.tree(), name), []byte(text), 0o600); err != nil {
		b.t.Error(err)
	}
}

func (b *bubble) give(text string) {
	b.t.Helper()
	if _, err := b.engine.Runs.StartRun(b.t.Context(), human, view.RunFlags{Task: &view.TaskFlags{Text: text, Agent: "coder"}}); err != nil {
		b.t.Fatal(err)
	}
	b.settle()
}

// TestReviewSendsBack checks that findings send a task back into its conversation until none is
// open. The reviewer gets the task's text, the difference as a file, and the open findings.
func TestReviewSendsBack(t *testing.T) {
	t.Parallel()
	var prompts, shown []string
	taskBubble(t, func(b *bubble, n int, prompt string, s *fakeSession) {
		prompts = append(prompts, prompt)
		b.write("b.txt", strings.Repeat("b\n", n))
		s.say("stop ok")
	}, func(b *bubble, n int, prompt string) string {
		diff, err := os.ReadFile(filepath.Join(b.conf.Dir, ".agents", "runs", "T1", "review.diff"))
		if err != nil {
			b.t.Error(err)
		}
		shown = append(shown, prompt+string(diff))
		return []string{
			`{"findings": [{"id": "F1", "file": "b.txt", "line": 1, "text": "one is not enough", "severity": "must"}, {"id": "F2", "text": "say why", "severity": "should"}]}`,
			`{"findings": "none"}`, // refused; the reviewer is asked again
			`{"findings": [], "resolved": ["F1"]}`,
		}[n-1]
	}, func(t *testing.T, b *bubble) {
		b.start()
		b.give("Write the file b")
		b.after(time.Minute)
		v := b.runView("T1")
		if v.Task.Status != view.TaskNeedsYou || v.Steps[1].Iteration != 1 || len(prompts) != 2 || len(shown) != 3 {
			t.Fatalf("%+v\nprompts %q\nshown %q", v, prompts, shown)
		}
		if got := b.resumedBy("coder-2"); got != "talk-coder-1" {
			t.Errorf("coder-2 resumed %q", got)
		}
		if !strings.Contains(prompts[1], "sent back by the step review") ||
			!strings.Contains(prompts[1], "F1 (must) b.txt:1: one is not enough") ||
			strings.Contains(prompts[1], "An earlier conversation") {
			t.Errorf("the agent received %q", prompts[1])
		}
		for i, wants := range [][]string{
			{"Write the file b", "branch main", "review.diff", "+b\n", "numbered from F1"},
			{"are open", "F1 (must) b.txt:1: one is not enough", "F2 (should) say why", "+b\n+b\n", "numbered from F3"},
		} {
			for _, want := range wants {
				if !strings.Contains(shown[i], want) {
					t.Errorf("round %d: the reviewer did not receive %q:\n%s", i+1, want, shown[i])
				}
			}
		}
		report, err := os.ReadFile(filepath.Join(b.conf.Dir, ".agents", "runs", "T1", "reports", "T1__review.json"))
		if err != nil || !strings.Contains(string(report), `"findings_open": 1`) || !strings.Contains(string(report), "open suggestions") {
			t.Errorf("the report: %s, %v", report, err)
		}
	})
}

// TestReviewStagnates checks that a review without progress ends, and that the task continues with
// a note.
func TestReviewStagnates(t *testing.T) {
	t.Parallel()
	rounds := 0
	taskBubble(t, func(b *bubble, n int, _ string, s *fakeSession) {
		rounds = n
		b.write("b.txt", strings.Repeat("b\n", n))
		s.say("stop ok")
	}, func(_ *bubble, n int, _ string) string {
		return []string{`{"findings": [{"id": "F1", "text": "no"}]}`, `{"findings": []}`, `{"findings": []}`}[n-1]
	}, func(t *testing.T, b *bubble) {
		b.start()
		b.give("Write the file b")
		b.after(time.Hour)
		v := b.runView("T1")
		report, err := os.ReadFile(filepath.Join(b.conf.Dir, ".agents", "runs", "T1", "reports", "T1__review.json"))
		if err != nil || v.Task.Status != view.TaskNeedsYou || rounds != 3 || !strings.Contains(string(report), "stagnation after 3 rounds") {
			t.Errorf("%d rounds, %+v\n%s %v", rounds, v, report, err)
		}
	})
}

// TestReviewerChangesFiles checks that a review in which the reviewer changed files fails, also in
// a retry. After a person has looked, the run continues.
func TestReviewerChangesFiles(t *testing.T) {
	t.Parallel()
	taskBubble(t, func(b *bubble, _ int, _ string, s *fakeSession) {
		b.write("b.txt", "the coder's\n")
		s.say("stop ok")
	}, func(b *bubble, n int, _ string) string {
		if n == 1 {
			b.write("b.txt", "the reviewer's\n")
		}
		return `{"findings": []}`
	}, func(t *testing.T, b *bubble) {
		b.start()
		b.give("Write the file b")
		b.after(time.Minute)
		v := b.runView("T1")
		if why := v.Steps[3].LastError; v.Task.Status != view.TaskFailed ||
			!strings.Contains(why, "files were changed during the review, which a reviewer may not do: b.txt.") ||
			!strings.Contains(why, "fairlead run resume T1") {
			t.Fatalf("%+v", v)
		}
		if _, err := b.engine.Runs.ResumeRun(t.Context(), human, "T1", view.RunFlags{}); err != nil {
			t.Fatal(err)
		}
		b.after(time.Minute)
		if v := b.runView("T1"); v.Task.Status != view.TaskNeedsYou {
			t.Errorf("%+v", v)
		}
	})
}

// TestHandOver checks that a new conversation receives a summary of an earlier one that cannot be
// resumed.
func TestHandOver(t *testing.T) {
	t.Parallel()
	var prompts []string
	taskBubble(t, func(b *bubble, n int, prompt string, s *fakeSession) {
		prompts = append(prompts, prompt)
		if n > 1 {
			s.say("stop ok")
			return
		}
		b.write("b.txt", "b\n")
		gitIn(b.t, b.tree(), "add", "b.txt")
		gitIn(b.t, b.tree(), "commit", "--quiet", "-m", "half of it")
		b.write("c.txt", "c\n")
		s.say("stop context_exhausted")
	}, nil, func(t *testing.T, b *bubble) {
		b.start()
		b.give("Write the files")
		b.after(time.Minute)
		if v := b.runView("T1"); v.Task.Status != view.TaskNeedsYou || len(prompts) != 2 || b.resumedBy("coder-2") != "" {
			t.Fatalf("%+v %q, coder-2 resumed %q", v, prompts, b.resumedBy("coder-2"))
		}
		if strings.Contains(prompts[0], "earlier conversation") {
			t.Errorf("the first one received %q", prompts[0])
		}
		for _, want := range []string{
			"Write the files", "An earlier conversation has worked on this task", " half of it\n", "b.txt | 1 +",
			"c.txt | 1 +", "2 files changed",
		} {
			if !strings.Contains(prompts[1], want) {
				t.Errorf("the new conversation did not receive %q:\n%s", want, prompts[1])
			}
		}
	})
}

// TestSnapshotsWhileAtWork checks that the folder of a task is saved every few minutes while its
// agent works, and only then.
func TestSnapshotsWhileAtWork(t *testing.T) {
	t.Parallel()
	kept := func(b *bubble) string {
		all := gitIn(b.t, b.conf.Dir, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/fairlead/tasks/")
		own, _, _ := strings.Cut(all, "\nT1.head") // the commit that the folder is on; the rest keeps the folder's other branches
		return own
	}
	taskBubble(t, func(b *bubble, _ int, _ string, s *fakeSession) {
		b.write("b.txt", "first\n")
		s.next(11 * time.Minute) // it works
		b.write("b.txt", "second\n")
		s.next(6 * time.Minute)
		s.say("stop ok")
	}, nil, func(t *testing.T, b *bubble) {
		b.start()
		b.give("Write the file b")
		b.after(4 * time.Minute)
		if got := kept(b); got != "T1" {
			t.Errorf("after 4 minutes: %q", got)
		}
		b.after(6 * time.Minute) // two, of which the second sees no change
		if got := kept(b); got != "T1\nT1.1" || gitIn(t, b.conf.Dir, "show", "refs/fairlead/tasks/T1:b.txt") != "first" {
			t.Errorf("after 10 minutes: %q", got)
		}
		b.after(6 * time.Minute)
		if got := kept(b); got != "T1\nT1.1\nT1.2" || gitIn(t, b.conf.Dir, "show", "refs/fairlead/tasks/T1.1:b.txt") != "first" ||
			gitIn(t, b.conf.Dir, "show", "refs/fairlead/tasks/T1.2:b.txt") != "second" {
			t.Errorf("after 16 minutes: %q", got)
		}
		b.after(3 * time.Minute)
		if v := b.runView("T1"); v.Task.Status != view.TaskNeedsYou {
			t.Fatalf("%+v", v)
		}
		b.write("b.txt", "third\n")
		b.after(time.Hour)
		if got := kept(b); got != "T1\nT1.1\nT1.2" {
			t.Errorf("after its end: %q", got)
		}
	})
}

// TestTaskDisk checks that above tasks.disk no task begins, and that the message says what uses the
// space.
func TestTaskDisk(t *testing.T) {
	t.Parallel()
	taskBubble(t, func(b *bubble, n int, _ string, s *fakeSession) {
		if n == 1 {
			b.write("b.txt", strings.Repeat("x", 2<<20))
		}
		s.say("stop ok")
	}, nil, func(t *testing.T, b *bubble) {
		b.conf.Tasks.DiskBytes = 1e6
		b.start()
		b.give("Write the file b")
		b.after(time.Minute)
		_, err := b.engine.Runs.StartRun(t.Context(), human, view.RunFlags{Task: &view.TaskFlags{Text: "more", Agent: "coder"}})
		if err == nil || !strings.Contains(err.Error(), "of 1.0 MB (tasks.disk in fairlead.yaml): T1 2.") ||
			!strings.Contains(err.Error(), "fairlead drop TASK") {
			t.Fatalf("%v", err)
		}
		if err := os.RemoveAll(b.tree()); err != nil {
			t.Fatal(err)
		}
		if _, err := b.engine.Runs.StartRun(t.Context(), human, view.RunFlags{Task: &view.TaskFlags{Text: "more", Agent: "coder"}}); err != nil {
			t.Error(err)
		}
	})
}
