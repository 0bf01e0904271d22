package app

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"
)

// A task whose landing failed lands again only for a person who looked at what was approved, or who names nothing.
func TestLandAgainIsForWhatWasApproved(t *testing.T) {
	t.Parallel()
	commit, tree := "", ""
	flow := answerFlow + `  - {id: land, agent: "{reviewer}", prompt: "{review}", needs: [approve], max_attempts: 1}
`
	taskBubble(t, flow, func(_ *bubble, _ int, _ string, s *fakeSession) { s.say("stop ok") },
		func(_ *bubble, n int, _ string) string {
			report := asksAbout(commit, tree, commit)
			if n > 1 {
				report = strings.ReplaceAll(report, `"step_id": "approve"`, `"step_id": "land"`)
			}
			if n == 2 {
				report = strings.ReplaceAll(report, "COMPLETED", "FAILED")
			}
			return report
		}, func(t *testing.T, b *bubble) {
			commit, tree = gitIn(t, b.conf.Dir, "rev-parse", "HEAD"), gitIn(t, b.conf.Dir, "rev-parse", "HEAD^{tree}")
			other := gitIn(t, b.conf.Dir, "hash-object", "-t", "tree", "-w", "/dev/null")
			merge := func(shown, tree string) error {
				_, err := b.engine.Tasks.MergeTask(t.Context(), human, "T1", shown, tree, "")
				return err
			}
			b.start()
			b.give("Write the file b")
			b.after(30 * time.Second)
			if err := merge(commit, tree); err != nil {
				t.Fatal(err)
			}
			b.after(time.Minute)
			if v := b.runView("T1"); v.Task.FailedStep != "land" {
				t.Fatalf("%+v\n%+v", v.Task, v.Steps)
			}
			refusedTask(t, merge("", other), "you looked at tree")
			refusedTask(t, merge(other, ""), "you looked at commit")
			refusedTask(t, merge(other, tree), "you looked at commit")
			if v := b.runView("T1"); v.Task.FailedStep != "land" {
				t.Fatalf("a refused order began it: %+v", v.Task)
			}
			if err := merge(commit, tree[:12]); err != nil {
				t.Fatal(err)
			}
			b.after(time.Minute)
			if v := b.runView("T1"); v.Task.Status != view.TaskDone {
				t.Errorf("%+v\n%+v", v.Task, v.Steps)
			}
		})
}
