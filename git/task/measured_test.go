package task

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// What status, a difference and an offer of a task begin with: a picture of its folder. FAIRLEAD_TASKS_MEASURED=1 prints medians.
func TestSnapshotMeasured(t *testing.T) {
	if os.Getenv("FAIRLEAD_TASKS_MEASURED") == "" {
		t.Skip("FAIRLEAD_TASKS_MEASURED is not set")
	}
	for _, files := range []int{20, 500} {
		w := newRepo(t)
		for i := range files {
			w.put(w.repo, fmt.Sprintf("d%d/f%d", i%50, i), fmt.Sprintln("text", i))
		}
		w.git(w.repo, "add", ".")
		w.git(w.repo, "commit", "--quiet", "-m", "files")
		task := w.give("T1", "")
		for _, changed := range []bool{false, true} {
			var took []time.Duration
			for i := range 31 {
				if changed {
					w.put(task.Tree, "d1/f1", fmt.Sprintln("changed", i))
				}
				began := time.Now()
				if _, err := task.Snapshot(t.Context()); err != nil {
					t.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			t.Logf("%d files, one changed: %v: median %v, least %v", files, changed, took[len(took)/2], took[0])
		}
	}
}
