package app

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"
)

// A task whose landing failed lands again only for a person who looked at what was approved, or who names nothing.
func TestLandAgainIsForWhatWasApproved(t *testing.T) {
	t.Parallel()
	taskBubble(t, func(b *bubble, _ int, _ string, s *fakeSession) {
		b.write("a.txt", "the agent's\n")
		s.say("stop ok")
	}, nil, func(t *testing.T, b *bubble) {
		other := gitIn(t, b.conf.Dir, "hash-object", "-t", "tree", "-w", "/dev/null")
		merge := func(shown, tree string) error {
			_, err := b.engine.Tasks.MergeTask(t.Context(), human, "T1", shown, tree, "")
			return err
		}
		b.start()
		b.give("Write the file a")
		b.after(30 * time.Second)
		shown := b.asksAbout("T1")
		b.put("a.txt", "the person's\n") // is in the way
		if err := merge(shown.Commit, shown.Tree); err != nil {
			t.Fatal(err)
		}
		b.after(time.Minute)
		if v := b.runView("T1"); v.Task.FailedStep != "land" || v.Task.Status != view.TaskNeedsYou {
			t.Fatalf("%+v\n%+v", v.Task, v.Steps)
		}
		refusedTask(t, merge("", other), "you looked at tree")
		refusedTask(t, merge(other, ""), "you looked at commit")
		refusedTask(t, merge(other, shown.Tree), "you looked at commit")
		if v := b.runView("T1"); v.Task.FailedStep != "land" {
			t.Fatalf("a refused order began it: %+v", v.Task)
		}
		gitIn(t, b.conf.Dir, "checkout", "--quiet", "a.txt")
		if err := merge(shown.Commit, shown.Tree[:12]); err != nil {
			t.Fatal(err)
		}
		b.after(time.Minute)
		if v := b.runView("T1"); v.Task.Status != view.TaskDone || gitIn(t, b.conf.Dir, "show", "main:a.txt") != "the agent's" {
			t.Errorf("%+v\n%+v", v.Task, v.Steps)
		}
	})
}
