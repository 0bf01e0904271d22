package transfer

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

// removed checks that nothing of the run is on the host, but for what it keeps.
func (p *pair) removed() {
	p.Helper()
	if m, err := Arrived(p.Context(), worktree.Git{Dir: p.host}, run); err != nil || m != (Mark{}) {
		p.Errorf("it counts as arrived: %+v, %v", m, err)
	}
	if _, err := os.Lstat(p.tree(p.host)); !errors.Is(err, fs.ErrNotExist) {
		p.Errorf("the checkout is there: %v", err)
	}
	if left := sh(p.T, p.host, "for-each-ref", "refs/heads", "refs/fairlead/carry"); left != "" {
		p.Errorf("refs are there: %s", left)
	}
}

func (p *pair) kept() []string {
	p.Helper()
	return strings.Fields(sh(p.T, p.host, "for-each-ref", "--format=%(refname)", "refs/fairlead/left"))
}

// TestRemove removes a checkout from a host. Nothing is kept of what the leader has, and it may be sent again.
func TestRemove(t *testing.T) {
	t.Parallel()
	p := begun(t)
	// nothing ever arrived
	must(t, Remove(t.Context(), p.host, Sent{Run: run, Path: "x", Head: strings.Repeat("0", 40), Snapshot: strings.Repeat("0", 40)}))
	put(t, p.tree(p.leader), "draft", "draft\n")
	for range 2 {
		s := p.send("")
		must(t, StoreMark(p.host, Mark{run, 7}))
		put(t, p.tree(p.host), "build/out.o", "ignored\n")
		for range 2 { // its answer did not arrive
			must(t, Remove(t.Context(), p.host, s))
			p.removed()
		}
	}
	if kept := p.kept(); len(kept) != 0 {
		t.Errorf("it kept %q", kept)
	}
}

// TestRemoveKeeps removes a checkout in which a host worked after the leader had last fetched it: a commit, a staged file,
// and one that is not.
func TestRemoveKeeps(t *testing.T) {
	t.Parallel()
	p := begun(t)
	s := p.send("")
	tree := p.tree(p.host)
	put(t, tree, "committed", "1\n")
	sh(t, tree, "add", "committed")
	sh(t, tree, "commit", "-q", "-m", "second")
	sh(t, tree, "checkout", "-q", "-b", "aside", s.Head)
	put(t, tree, "branched", "branch\n")
	sh(t, tree, "add", "branched")
	sh(t, tree, "commit", "-q", "-m", "on another branch")
	sh(t, tree, "checkout", "-q", "fairlead/r1")
	put(t, tree, "staged", "index\n")
	sh(t, tree, "add", "staged")
	put(t, tree, "staged", "disk\n")
	put(t, tree, "loose", "loose\n")
	must(t, Remove(t.Context(), p.host, s))
	p.removed()
	content := ""
	for _, ref := range p.kept() {
		for _, name := range []string{"committed", "staged", "loose", "branched"} {
			if strings.Contains(sh(t, p.host, "ls-tree", "--name-only", ref), name) {
				content += sh(t, p.host, "show", ref+":"+name) + " "
			}
		}
	}
	for _, want := range []string{"1 ", "index ", "disk ", "loose ", "branch "} {
		if !strings.Contains(content, want) {
			t.Errorf("%q is not in %q", want, content)
		}
	}
}

// TestRemoveAgain finishes what a crash has interrupted, and leaves the branch of the repository.
func TestRemoveAgain(t *testing.T) {
	t.Parallel()
	p := begun(t)
	s := p.send("")
	must(t, os.Rename(p.tree(p.host), worktree.Aside(p.tree(p.host), worktree.GoneSuffix)))
	must(t, Remove(t.Context(), p.host, s))
	p.removed()
	p.send("")
	sh(t, p.host, "branch", "-q", "fairlead/r1", s.Head)
	must(t, Remove(t.Context(), p.host, s))
	if at := sh(t, p.host, "rev-parse", "fairlead/r1"); at != s.Head {
		t.Errorf("the branch of the repository is at %s", at)
	}
}
