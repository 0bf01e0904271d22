package transfer

import (
	"errors"
	"os/exec"
	"testing"
)

// A merge with conflicts in the leader's checkout stays open while an agent on another host resolves it in the files. One that was begun
// meanwhile is a change.
func TestMergeStaysOpen(t *testing.T) {
	t.Parallel()
	p := begun(t)
	tree := p.tree(p.leader)
	put(t, tree, "README", "one\nagent\nthree\n")
	sh(t, tree, "commit", "-q", "-a", "-m", "work")
	put(t, p.leader, "README", "one\nperson\nthree\n")
	sh(t, p.leader, "commit", "-q", "-a", "-m", "the person's")
	tip := sh(t, p.leader, "rev-parse", "HEAD")
	p.refresh()
	sh(t, tree, "fetch", "-q", "origin")
	cmd := exec.Command("git", "-c", "user.name=A", "-c", "user.email=a@b.c", "merge", tip)
	cmd.Dir = tree
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Fatalf("there is no conflict: %s", out)
	}
	p.send("")
	put(t, p.tree(p.host), "README", "one\nboth\nthree\n")
	sh(t, p.tree(p.host), "commit", "-q", "-a", "-m", "resolved")
	_, err := p.fetch()
	must(t, err)
	p.equal()
	if got := sh(t, tree, "rev-parse", "MERGE_HEAD"); got != tip {
		t.Errorf("merged: %s", got)
	}
	p.send(p.was.Snapshot)
	put(t, p.tree(p.host), "README", "one\nmore\nthree\n")
	sh(t, tree, "update-ref", "MERGE_HEAD", "HEAD")
	if _, err := p.fetch(); !errors.As(err, new(*Changed)) {
		t.Errorf("a merge of another commit: %v", err)
	}
	sh(t, tree, "update-ref", "MERGE_HEAD", tip)
	_, err = p.fetch()
	must(t, err)
	p.equal()
}
