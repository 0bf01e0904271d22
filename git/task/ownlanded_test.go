package task

import (
	"errors"
	"os"
	"testing"
)

// What an agent did to Fairlead's own files is no work of the task: it is neither a change after the question, nor does it keep
// the folder, nor does another machine ask again because of it. A change of another file does all three.
func TestOwnFilesAreNoLaterChange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, later string // what is written after the question
		counts      bool
	}{
		{name: "before the question only"},
		{name: "again after the question", later: "home/agent_state.json"},
		{name: "a file of the task", later: "b.txt", counts: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newRepo(t)
			w.put(w.repo, "home/agent_state.json", "old\n")
			w.git(w.repo, "add", "--force", ".")
			w.git(w.repo, "commit", "--quiet", "-m", "everything")
			w.task = w.give("T1", "")
			w.task.Homes = []string{"home"}
			w.put(w.task.Tree, "home/agent_state.json", "of the agent\n")
			w.put(w.task.Tree, "b.txt", "b\n")
			s, err := w.task.Show(t.Context(), w.task.Run)
			w.must(err)
			w.task.Asked = s.Asked
			if tt.later != "" {
				w.put(w.task.Tree, tt.later, "later\n")
			}

			away := w.task // of another machine, which does not have the commit that was shown
			away.Asked.Commit = "1111111111111111111111111111111111111111"
			if _, err := away.approved(t.Context()); errors.As(err, new(*Again)) != tt.counts || err != nil && !tt.counts {
				t.Errorf("another machine: %v", err)
			}
			done, err := lands(t.Context(), w.task, os.Stderr)
			w.must(err)
			if done.Later != tt.counts {
				t.Errorf("later is %v", done.Later)
			}
			if stays, err := w.task.RemoveLanded(t.Context()); err != nil || stays != tt.counts {
				t.Errorf("the folder stays: %v, %v", stays, err)
			}
		})
	}
}
