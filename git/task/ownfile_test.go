package task

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A push from a task's folder does not reach the person's repository. Fetching from it works, and so does a push to another.
func TestFolderDoesNotPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.git(w.repo, "checkout", "--quiet", "-b", "feature") // git refuses a push to the branch that is checked out
	w.put(w.task.Tree, "b.txt", "b\n")
	w.git(w.task.Tree, "add", "b.txt")
	w.git(w.task.Tree, "commit", "--quiet", "-m", "the agent's")
	p := &play{T: t}
	rel, err := filepath.Rel(w.task.Tree, w.repo)
	if err != nil {
		t.Fatal(err)
	}
	before := w.git(w.repo, "for-each-ref")
	for _, to := range [][]string{
		{"origin", "HEAD:main"},
		{"origin", "HEAD:refs/heads/new"},
		{"--force", "origin", "+HEAD:refs/heads/main"},
		{"--all", "origin"},
		{w.repo, "HEAD:main"},
		{w.repo + "/.git", "HEAD:main"},
		{"--delete", "origin", "main"},
		{"file://" + w.repo, "HEAD:main"},
		{rel, "HEAD:main"},
		{"./" + rel + "/.git", "HEAD:main"},
	} {
		_, err := p.try(w.task.Tree, append([]string{"push"}, to...)...)
		if err == nil || w.git(w.repo, "for-each-ref") != before {
			t.Errorf("push %q: %v\n%s", to, err, w.git(w.repo, "for-each-ref"))
		}
	}
	w.git(w.repo, "update-ref", "refs/heads/main", w.git(w.repo, "commit-tree", "-p", "main", "-m", "newer", "main^{tree}"))
	w.must(w.task.Refresh(t.Context()))
	w.git(w.task.Tree, "fetch", "--quiet", "origin", "main")
	if got := w.git(w.task.Tree, "rev-parse", "FETCH_HEAD"); got != w.git(w.repo, "rev-parse", "main") {
		t.Errorf("fetched %s", got)
	}
	other := filepath.Join(t.TempDir(), "other")
	w.git(w.repo, "init", "--quiet", "--bare", other)
	w.git(w.task.Tree, "push", "--quiet", other, "HEAD:refs/heads/new")
	if got := w.git(other, "rev-parse", "new"); got != w.git(w.task.Tree, "rev-parse", "HEAD") {
		t.Errorf("pushed %s", got)
	}
}

// Files that Fairlead writes while it runs may be tracked: they do not stop a task from landing, and what a task does to them
// does not land. Other files, also with such names, do both.
func TestOwnFilesDoNotCount(t *testing.T) {
	t.Parallel()
	own := []string{
		"home/agent_state.json", "home/.agent_state.json.lock", "home/.agent_state.json.swap-1",
		"home/agent_state.json.corrupt-1", "agent_state.json", ".agents/runs/T9/run_state.json", ".fairlead/x",
	}
	not := []string{
		"other/agent_state.json", "home/below/agent_state.json", "home/my_agent_state.json", ".agents/prompts/x.md",
		"fairlead/x",
	}
	w := newRepo(t)
	for _, name := range append(own, not...) {
		w.put(w.repo, name, "old\n")
	}
	w.git(w.repo, "add", "--force", ".")
	w.git(w.repo, "commit", "--quiet", "-m", "everything")
	w.task = w.give("T1", "")
	w.task.Homes = []string{"home", "."}
	for _, name := range append(own, not...) {
		w.put(w.task.Tree, name, "of the agent\n")
	}
	w.must(os.Remove(filepath.Join(w.task.Tree, own[1])))
	w.git(w.task.Tree, "add", "--force", "--all")
	w.git(w.task.Tree, "commit", "--quiet", "-m", "the agent's")
	w.put(w.task.Tree, "home/.agent_state.json.new-2", "loose\n")
	for i, name := range own {
		w.put(w.repo, name, "written meanwhile\n")
		if i == 2 {
			w.must(os.Remove(filepath.Join(w.repo, name)))
		}
	}
	s, err := w.task.Show(t.Context(), w.task.Run)
	w.must(err)
	if s.Files != len(not) || strings.Contains(strings.Join(s.Stat, "\n"), "home/agent_state") {
		t.Errorf("%d files are shown: %q", s.Files, s.Stat)
	}
	for _, name := range not {
		w.put(w.repo, name, "of the person\n")
		w.task.Asked = s.Asked
		var blocked *Blocked
		if _, err := lands(t.Context(), w.task, os.Stderr); !errors.As(err, &blocked) ||
			!strings.HasSuffix(blocked.Why, ": "+name+"; commit or stash them, then merge again") {
			t.Errorf("with %s of the person: %v", name, err)
		}
		w.git(w.repo, "checkout", "--quiet", "--", name)
	}
	if _, err := lands(t.Context(), w.task, os.Stderr); err != nil {
		t.Fatal(err)
	}
	for _, name := range own {
		if got := w.onBase(name); got != "old" {
			t.Errorf("%s is %q on the base", name, got)
		}
	}
	for _, name := range not {
		if got := w.onBase(name); got != "of the agent" {
			t.Errorf("%s is %q on the base", name, got)
		}
	}
	if got := w.git(w.repo, "ls-files", "home/.agent_state.json.new-2"); got != "" {
		t.Errorf("%s has landed", got)
	}
}

// A folder in the middle of a merge is no result: it goes back to the agent, and is not shown. Once the conflict is resolved,
// it is; lines that look like conflict markers are pointed out.
func TestHalfMerged(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			w := &world{T: t, repo: filepath.Join(t.TempDir(), "repo")}
			w.put(w.repo, "a.txt", "one\n")
			w.git(w.repo, "init", "--quiet", "-b", "main", "--object-format="+format)
			w.git(w.repo, "config", "user.name", "A Person")
			w.git(w.repo, "config", "user.email", "person@example.org")
			w.git(w.repo, "add", ".")
			w.git(w.repo, "commit", "--quiet", "-m", "first")
			w.task = w.give("T1", "")
			w.git(w.task.Tree, "checkout", "--quiet", "-b", "x")
			w.put(w.task.Tree, "a.txt", "x\n")
			w.git(w.task.Tree, "commit", "--quiet", "-a", "-m", "x")
			w.git(w.task.Tree, "checkout", "--quiet", "-")
			w.put(w.task.Tree, "a.txt", "y\n")
			w.put(w.task.Tree, "b.txt", "y\n")
			w.git(w.task.Tree, "add", "b.txt")
			w.git(w.task.Tree, "commit", "--quiet", "-a", "-m", "y")
			if _, err := (&play{T: t}).try(w.task.Tree, "merge", "x"); err == nil {
				t.Fatal("there is no conflict")
			}
			var failed *CheckFailed
			if err := w.task.Check(t.Context(), os.Stderr); !errors.As(err, &failed) ||
				!strings.Contains(err.Error(), "have conflicts: a.txt. Resolve them") {
				t.Errorf("checked: %v", err)
			}
			if _, err := w.task.Show(t.Context(), w.task.Run); !errors.As(err, new(*Blocked)) ||
				!strings.Contains(err.Error(), "a.txt have conflicts") {
				t.Errorf("shown: %v", err)
			}
			w.git(w.task.Tree, "add", "a.txt")
			if err := w.task.Check(t.Context(), os.Stderr); !errors.As(err, &failed) || !strings.Contains(err.Error(), "not resolved") {
				t.Errorf("checked with the lines of the conflict: %v", err)
			}
			s, err := w.task.Show(t.Context(), w.task.Run)
			w.must(err)
			if !strings.Contains(strings.Join(s.Stat, "\n"), "look like conflict markers: a.txt\n") {
				t.Errorf("%q", s.Stat)
			}
			w.put(w.task.Tree, "a.txt", "x and y\n")
			s, err = w.task.Show(t.Context(), w.task.Run)
			w.must(err)
			if strings.Contains(strings.Join(s.Stat, "\n"), "conflict") {
				t.Errorf("%q", s.Stat)
			}
		})
	}
}
