package transfer

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// TestKilledAtEachCommand kills git after each of its commands in turn, in both directions. The same call then succeeds.
// The short form kills it after each third command, and begins at one of the first three.
func TestKilledAtEachCommand(t *testing.T) {
	p := begun(t)
	real := sh(t, p.leader, "--exec-path") + "/git"
	bin := t.TempDir()
	count := filepath.Join(bin, "count")
	// Commands that only read are not counted.
	script := fmt.Sprintf(`#!/bin/sh
if [ ! -e %[1]s ]; then exec %[2]s "$@"; fi
case " $* " in *" ls-"* | *" rev-"* | *" cat-file "* | *" config --"* | *" check-"* | *" diff-"* | *" merge-base "* | *" for-each-ref "*) exec %[2]s "$@" ;; esac
read n <%[1]s; echo $((n-1)) >%[1]s
%[2]s "$@"; r=$?
if [ $n = 1 ]; then kill -9 $$; fi
exit $r
`, count, real)
	must(t, os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755)) //nolint:gosec // a program
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	killed := func(n int, call func() error) bool {
		must(t, os.WriteFile(count, fmt.Appendf(nil, "%d\n", n), 0o600))
		err := call()
		must(t, os.Remove(count))
		if err != nil {
			must(t, call())
		}
		return err != nil
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	step := testsize.Pick(3, 1, 1)
	first := 1 + random.IntN(step)

	for n, again := first, true; again; n += step { // the checkout is made anew each time
		s, pack, err := carried(t.Context(), p.leader, p.host, p.tree(p.leader), 100)
		must(t, err)
		again = killed(n, func() error { return Unpack(t.Context(), p.host, bytes.NewReader(pack), s, "") })
		p.equal()
		if again {
			must(t, os.RemoveAll(p.host))
			must(t, os.Mkdir(p.host, 0o755))
		}
	}
	p.send("")
	for n, again := first, true; again; n += step {
		edit(t, random, p.tree(p.host))
		s, pack, err := carried(t.Context(), p.host, p.leader, p.tree(p.host), 100)
		must(t, err)
		again = killed(n, func() error {
			return Take(t.Context(), worktree.Git{Dir: p.leader}, p.tree(p.leader), bytes.NewReader(pack), s, p.was, p.ref())
		})
		p.equal()
		edit(t, random, p.tree(p.leader))
		s, pack, err = carried(t.Context(), p.leader, p.host, p.tree(p.leader), 100)
		must(t, err)
		if killed(n, func() error { return Unpack(t.Context(), p.host, bytes.NewReader(pack), s, "") }) {
			again = true
		}
		p.was = s
		p.equal()
	}
}

// TestEndedInTheMiddleOfFiles ends git's work while it writes the leader's files.
func TestEndedInTheMiddleOfFiles(t *testing.T) {
	if a := sandbox.Abilities(); os.Geteuid() == 0 && a.By != sandbox.ByNamespaces {
		t.Skip("root may write in every folder where there is no view")
	}
	p := begun(t)
	p.send("")
	for _, name := range []string{"a", "b.k", "c", "README", "src/a.go"} {
		put(t, p.tree(p.host), name, "new\n")
	}
	closed := filepath.Join(p.tree(p.leader), "src")
	must(t, os.Chmod(closed, 0o555)) //nolint:gosec // a folder
	if _, err := p.fetch(); err == nil {
		t.Fatal("it was not ended")
	}
	must(t, os.Chmod(closed, 0o755))                   //nolint:gosec // a folder
	put(t, p.tree(p.leader), "README", "a person's\n") // in a place that the update has or will have
	s, pack, err := carried(t.Context(), p.host, p.leader, p.tree(p.host), 100)
	must(t, err)
	must(t, Take(t.Context(), worktree.Git{Dir: p.leader}, p.tree(p.leader), bytes.NewReader(pack), s, p.was, p.ref()))
	p.equal()
	if left := sh(t, p.leader, "for-each-ref", "--format=%(refname)", "refs/fairlead/left"); sh(t, p.leader, "show",
		left+":README") != "a person's" {
		t.Errorf("what the person wrote is lost; left is %q", left)
	}
}

// TestChangedMeanwhile checks that Take overwrites nothing that a person has changed.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	p := begun(t)
	tree := p.tree(p.leader)
	p.send("")
	put(t, p.tree(p.host), "README", "by an agent\n")
	put(t, p.tree(p.host), "new.o", "kept\n")
	sh(t, p.tree(p.host), "add", "-f", "new.o")
	sh(t, tree, "branch", "other")
	for what, c := range map[string]struct{ change, undo func() }{
		"a file":          {func() { put(t, tree, "README", "mine\n") }, func() { sh(t, tree, "checkout", "-q", "README") }},
		"a new file":      {func() { put(t, tree, "mine", "mine\n") }, func() { must(t, os.Remove(filepath.Join(tree, "mine"))) }},
		"an ignored file": {func() { put(t, tree, "new.o", "mine\n") }, func() { must(t, os.Remove(filepath.Join(tree, "new.o"))) }},
		"a mode": {
			func() { must(t, os.Chmod(filepath.Join(tree, "README"), 0o755)) },
			func() { must(t, os.Chmod(filepath.Join(tree, "README"), 0o644)) },
		}, //nolint:gosec // its mode is the point
		"a commit": {
			func() { sh(t, tree, "commit", "-q", "--allow-empty", "-m", "mine") },
			func() { sh(t, tree, "reset", "-q", "--hard", "HEAD^") },
		},
		"a branch": {func() { sh(t, tree, "checkout", "-q", "other") }, func() { sh(t, tree, "checkout", "-q", "fairlead/r1") }},
		"a merge": {
			func() { sh(t, tree, "update-ref", "MERGE_HEAD", "HEAD") }, func() { sh(t, tree, "update-ref", "-d", "MERGE_HEAD") },
		},
		"a moved checkout": {func() { must(t, os.Rename(tree, tree+"2")) }, func() { must(t, os.Rename(tree+"2", tree)) }},
	} {
		c.change()
		before := map[string]string{}
		if what != "a moved checkout" {
			before = files(t, tree)
		}
		s, err := p.fetch()
		changed, is := errors.AsType[*Changed](err)
		if !is {
			t.Fatalf("%s: %v", what, err)
		}
		if at := sh(t, p.leader, "rev-parse", changed.Ref); at != s.Snapshot || changed.Ref != p.ref() {
			t.Errorf("%s: %s is %s", what, changed.Ref, at)
		}
		if what != "a moved checkout" {
			if after := files(t, tree); fmt.Sprint(before) != fmt.Sprint(after) {
				t.Errorf("%s: %v became %v", what, before, after)
			}
		}
		c.undo()
	}
	_, err := p.fetch()
	must(t, err)
	p.equal()
}

// TestStagedIsKept stages a content that the files do not have.
func TestStagedIsKept(t *testing.T) {
	t.Parallel()
	p := begun(t)
	tree := p.tree(p.leader)
	put(t, tree, "README", "only staged\n")
	sh(t, tree, "add", "README")
	put(t, tree, "README", "on disk\n")
	p.send("")
	put(t, p.tree(p.host), "README", "by an agent\n")
	_, err := p.fetch()
	must(t, err)
	p.equal()
	left := sh(t, p.leader, "for-each-ref", "--format=%(refname)", "refs/fairlead/left")
	if sh(t, p.leader, "show", left+":README") != "only staged" {
		t.Errorf("left is %q", left)
	}
}

// TestIgnoredStay has ignored files on both sides, and one in the place of a file that arrives.
func TestIgnoredStay(t *testing.T) {
	t.Parallel()
	p := begun(t)
	p.send("")
	put(t, p.tree(p.host), "build/cache", "of the host\n")
	put(t, p.tree(p.host), "x.o", "of the host\n")
	put(t, p.tree(p.leader), "build/secret", "of the leader\n")
	put(t, p.tree(p.leader), "x.o", "of the leader\n")
	sh(t, p.tree(p.leader), "add", "-f", "x.o")
	s, pack, err := carried(t.Context(), p.leader, p.host, p.tree(p.leader), 100)
	must(t, err)
	must(t, Unpack(t.Context(), p.host, bytes.NewReader(pack), s, ""))
	for name, want := range map[string]string{"build/cache": "of the host\n", "x.o": "of the leader\n"} {
		if got, _ := os.ReadFile(filepath.Join(p.tree(p.host), name)); string(got) != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if _, err := os.Lstat(filepath.Join(p.tree(p.host), "build/secret")); err == nil {
		t.Error("an ignored file was carried")
	}
	left := sh(t, p.host, "for-each-ref", "--format=%(refname)", "refs/fairlead/left")
	if sh(t, p.host, "show", left+":x.o") != "of the host" {
		t.Errorf("left is %q", left)
	}
}

// TestClone has a task's folder on the leader: a clone, whose settings and excludes an agent may have written.
func TestClone(t *testing.T) {
	t.Parallel()
	p := begun(t)
	tree, ran := p.tree(p.leader), filepath.Join(t.TempDir(), "ran")
	must(t, os.RemoveAll(tree))
	sh(t, p.leader, "clone", "-q", "--shared", ".", tree)
	sh(t, tree, "checkout", "-q", "-b", "fairlead/task")
	put(t, tree, ".git/info/exclude", ".env\n")
	put(t, tree, ".env", "SECRET\n")
	put(t, tree, ".gitattributes", "* filter=bad\n")
	for _, key := range []string{
		"filter.bad.clean", "filter.bad.smudge", "core.fsmonitor", "core.sshCommand", "core.alternateRefsCommand",
		"uploadpack.packObjectsHook", "diff.external", "gpg.program",
	} {
		sh(t, tree, "config", key, "touch "+ran+"; cat")
	}
	hooks(t, filepath.Join(tree, ".git", "hooks"), ran)
	put(t, tree, "draft", "one\n")
	s, pack, err := carried(t.Context(), p.leader, p.host, tree, 100)
	must(t, err)
	must(t, Unpack(t.Context(), p.host, bytes.NewReader(pack), s, ""))
	there := p.tree(p.host)
	if _, err := os.Lstat(filepath.Join(there, ".env")); err == nil {
		t.Error(".env was carried")
	}
	put(t, there, "draft", "two\n")
	sh(t, there, "add", "draft")
	sh(t, there, "commit", "-q", "-m", "by an agent")
	put(t, there, "more", "more\n")
	p.was = s
	s, err = p.fetch()
	must(t, err)
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a program that the clone names has run")
	}
	sh(t, tree, "config", "--unset", "core.fsmonitor")
	if head, branch := sh(t, tree, "rev-parse", "HEAD"), sh(t, tree, "symbolic-ref", "HEAD"); head != s.Head ||
		branch != "refs/heads/fairlead/task" {
		t.Errorf("HEAD is %s on %s", head, branch)
	}
	if got, _ := os.ReadFile(filepath.Join(tree, "draft")); string(got) != "two\n" {
		t.Errorf("draft is %q", got)
	}
	must(t, os.Remove(filepath.Join(tree, ".git", "index")))
	must(t, os.Symlink(filepath.Join(p.leader, "README"), filepath.Join(tree, ".git", "index")))
	if _, err := p.fetch(); err == nil {
		t.Error("a link in place of the index was taken")
	}
}

// hooks puts every hook that git could run there.
func hooks(t *testing.T, dir, ran string) {
	t.Helper()
	for _, name := range []string{
		"post-checkout", "reference-transaction", "post-index-change", "pre-commit", "post-commit", "post-merge",
		"fsmonitor-watchman", "pre-auto-gc",
	} {
		put(t, dir, name, "#!/bin/sh\ntouch "+ran+"\n")
		must(t, os.Chmod(filepath.Join(dir, name), 0o755)) //nolint:gosec // a program
	}
}

// TestHooksDoNotRun has all hooks in both repositories.
func TestHooksDoNotRun(t *testing.T) {
	t.Parallel()
	p := begun(t)
	ran := filepath.Join(t.TempDir(), "ran")
	sh(t, p.host, "init", "-q")
	hooks(t, filepath.Join(p.leader, ".git", "hooks"), ran)
	hooks(t, filepath.Join(p.host, ".git", "hooks"), ran)
	s, pack, err := carried(t.Context(), p.leader, p.host, p.tree(p.leader), 100)
	must(t, err)
	must(t, Unpack(t.Context(), p.host, bytes.NewReader(pack), s, ""))
	put(t, p.tree(p.host), "new", "new\n")
	p.was = s
	_, err = p.fetch()
	must(t, err)
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a hook has run")
	}
}

// TestKindsOfHosts has hosts whose repository is a shallow, a sparse, a partial or a full clone, with other line endings.
func TestKindsOfHosts(t *testing.T) {
	for kind, args := range map[string][]string{
		"shallow": {"--depth", "1"}, "sparse": {"--sparse"}, "partial": {"--filter=blob:none", "--no-checkout"},
		"bare of files": {"--no-checkout"}, "full": nil,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := begun(t)
			sh(t, p.leader, "config", "uploadpack.allowFilter", "true")
			put(t, p.leader, "README", "of a newer commit\n") // the run is on the first one, which a shallow clone lacks
			sh(t, p.leader, "commit", "-q", "-a", "-m", "second")
			must(t, os.RemoveAll(p.host))
			sh(t, p.leader, append(append([]string{"clone", "-q"}, args...), "file://"+p.leader, p.host)...)
			sh(t, p.host, "config", "remote.origin.url", "/nowhere")
			put(t, p.tree(p.leader), "src/deep/er/c.go", "package c\n")
			p.send("")
			random := rand.New(rand.NewPCG(1, 2))
			for range 3 {
				edit(t, random, p.tree(p.host))
				s, err := p.fetch()
				must(t, err)
				p.equal()
				edit(t, random, p.tree(p.leader))
				p.send(s.Snapshot)
			}
			sh(t, p.leader, "fsck")
		})
	}
}

// TestSparseLeader has a checkout without most files. They are carried, and the checkout here stays sparse.
func TestSparseLeader(t *testing.T) {
	t.Parallel()
	p := begun(t)
	tree := p.tree(p.leader)
	sh(t, tree, "update-index", "--refresh") // as root: the index has the owners that a view shows
	sh(t, tree, "sparse-checkout", "set", "--no-cone", "/README", "/mine")
	if _, err := os.Lstat(filepath.Join(tree, "src")); err == nil {
		t.Fatal("it is not sparse")
	}
	put(t, tree, "mine", "mine\n")
	s, pack, err := carried(t.Context(), p.leader, p.host, tree, 100)
	must(t, err)
	must(t, Unpack(t.Context(), p.host, bytes.NewReader(pack), s, ""))
	there := p.tree(p.host)
	if _, err := os.Lstat(filepath.Join(there, "src/a.go")); err != nil {
		t.Error(err)
	}
	put(t, there, "README", "by an agent\n")
	p.was = s
	_, err = p.fetch()
	must(t, err)
	if got := sh(t, tree, "status", "--porcelain"); got != " M README\n?? mine" {
		t.Errorf("status is %q", got)
	}
}

// TestGitFileElsewhere has a .git that names another repository, or another checkout.
func TestGitFileElsewhere(t *testing.T) {
	t.Parallel()
	p := begun(t)
	p.send("")
	tree, other := p.tree(p.host), filepath.Join(t.TempDir(), "other")
	sh(t, p.host, "worktree", "add", "-q", "--detach", other, p.was.Head)
	git, aside := filepath.Join(tree, ".git"), filepath.Join(t.TempDir(), "git")
	refuses := func(how string) {
		t.Helper()
		if _, err := Snapshot(t.Context(), worktree.Git{Dir: p.host}, p.host, tree, run); err == nil {
			t.Errorf("%s: the commit was read", how)
		}
	}
	must(t, os.Rename(git, aside))
	for _, dir := range []string{
		aside, filepath.Join(p.leader, ".git"), filepath.Join(p.host, ".git"),
		filepath.Join(p.host, ".git", "worktrees", "other"),
	} {
		put(t, tree, ".git", "gitdir: "+dir+"\n")
		refuses("a file that names " + dir)
		must(t, os.Remove(git))
		must(t, os.Symlink(dir, git))
		refuses("a link to " + dir)
		must(t, os.Remove(git))
	}
	must(t, os.Rename(aside, git))
	put(t, git, "commondir", filepath.Join(p.host, ".git")+"\n")
	refuses("a common folder")
	must(t, os.Remove(filepath.Join(git, "commondir")))
	_, err := p.fetch()
	must(t, err)
}

// TestLineEndings has files with CRLF on the leader, where git converts them.
func TestLineEndings(t *testing.T) {
	t.Parallel()
	p := begun(t)
	tree := p.tree(p.leader)
	sh(t, p.leader, "config", "core.autocrlf", "true")
	sh(t, tree, "config", "core.autocrlf", "true") // as a clone that is made now
	must(t, os.Remove(filepath.Join(tree, "README")))
	sh(t, tree, "checkout", "-q", "README")
	put(t, tree, "new", "one\r\ntwo\r\n")
	s, pack, err := carried(t.Context(), p.leader, p.host, tree, 100)
	must(t, err)
	must(t, Unpack(t.Context(), p.host, bytes.NewReader(pack), s, ""))
	there := p.tree(p.host)
	if got := sh(t, there, "status", "--porcelain"); got != "?? new" {
		t.Errorf("status of the host is %q", got)
	}
	put(t, there, "src/a.go", "package b\n")
	p.was = s
	_, err = p.fetch()
	must(t, err)
	for name, want := range map[string]string{"README": "one\r\ntwo\r\nthree\r\n", "new": "one\r\ntwo\r\n", "src/a.go": "package b\r\n"} {
		if got, _ := os.ReadFile(filepath.Join(tree, name)); string(got) != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// TestSubmodule carries a submodule as its commit, and leaves a repository inside alone.
func TestSubmodule(t *testing.T) {
	t.Parallel()
	p := begun(t)
	tree := p.tree(p.leader)
	sub := filepath.Join(t.TempDir(), "sub")
	must(t, os.Mkdir(sub, 0o755)) //nolint:gosec // a test's
	sh(t, sub, "init", "-q")
	sh(t, sub, "commit", "-q", "--allow-empty", "-m", "sub")
	sh(t, tree, "submodule", "--quiet", "add", sub, "sub")
	sh(t, tree, "commit", "-q", "-m", "a submodule")
	sh(t, tree, "init", "-q", "inside")
	put(t, tree, "inside/file", "x")
	s, pack, err := carried(t.Context(), p.leader, p.host, tree, 100)
	must(t, err)
	must(t, Unpack(t.Context(), p.host, bytes.NewReader(pack), s, ""))
	there := p.tree(p.host)
	put(t, there, "README", "by an agent\n")
	p.was = s
	if s, err = p.fetch(); err != nil {
		t.Fatal(err)
	}
	if at := sh(t, p.leader, "rev-parse", s.Snapshot+":sub"); at != sh(t, sub, "rev-parse", "HEAD") {
		t.Errorf("the submodule is at %s", at)
	}
	for _, name := range []string{"inside/file", "sub/.git"} {
		if _, err := os.Lstat(filepath.Join(tree, name)); err != nil {
			t.Error(err)
		}
	}
}

// object writes any object, also a wrong one.
func object(t *testing.T, dir, kind, content string) string {
	t.Helper()
	put(t, dir, ".git/object", content)
	return sh(t, dir, "hash-object", "-t", kind, "--literally", "-w", ".git/object")
}

func entry(mode, name, hash string) string {
	raw, _ := hex.DecodeString(hash)
	return mode + " " + name + "\x00" + string(raw)
}

// TestHostile has packs that no honest host sends. None moves the checkout or a ref.
func TestHostile(t *testing.T) { //nolint:paralleltest // it lowers a limit of the package
	p := begun(t)
	p.send("")
	blob := object(t, p.host, "blob", "#!/bin/sh\n")
	commit := func(tree string, parents ...string) string {
		text := "tree " + tree + "\n"
		for _, parent := range parents {
			text += "parent " + parent + "\n"
		}
		return object(t, p.host, "commit", text+"author A <a@b.c> 1 +0000\ncommitter A <a@b.c> 1 +0000\n\nhostile\n")
	}
	tree := func(entries ...string) string { return object(t, p.host, "tree", strings.Join(entries, "")) }
	empty := tree()
	missing := fmt.Sprintf("%x", sha1.Sum([]byte("missing"))) //nolint:gosec // git's
	big := object(t, p.host, "blob", strings.Repeat("0", 1<<20))
	many := ""
	for i := range 100 {
		many += entry("100644", fmt.Sprintf("f%03d", i), big)
	}
	defer func(was int64) { treeBytesMax = was }(treeBytesMax)
	treeBytesMax = 99 << 20
	for what, c := range map[string]struct{ snapshot, head, branch, want string }{
		".git": {
			commit(tree(entry("40000", ".git", tree(entry("100755", "x", blob)))), p.was.Head), p.was.Head,
			p.was.Branch, "hasDotgit",
		},
		".GIT": {
			commit(tree(entry("40000", ".GIT", tree(entry("100755", "x", blob)))), p.was.Head), p.was.Head,
			p.was.Branch, "hasDotgit",
		},
		"..": {
			commit(tree(entry("40000", "..", tree(entry("100755", "x", blob)))), p.was.Head), p.was.Head,
			p.was.Branch, "hasDotdot",
		},
		"a slash": {commit(tree(entry("100644", "../x", blob)), p.was.Head), p.was.Head, p.was.Branch, "fullPathname"},
		"two of one name": {commit(tree(entry("120000", "a", blob), entry("40000", "a", tree(entry("100755", "x", blob)))),
			p.was.Head), p.was.Head, p.was.Branch, "duplicateEntries"},
		"modules is a link": {
			commit(tree(entry("120000", ".gitmodules", blob)), p.was.Head), p.was.Head, p.was.Branch,
			"gitmodulesSymlink",
		},
		"no tree":               {commit(blob, p.was.Head), p.was.Head, p.was.Branch, ""},
		"two parents":           {commit(empty, p.was.Head, p.was.Head), p.was.Head, p.was.Branch, "no commit on top"},
		"another parent":        {commit(empty), p.was.Head, p.was.Branch, "no commit on top"},
		"a blob":                {blob, blob, p.was.Branch, ""},
		"large":                 {commit(tree(many), p.was.Head), p.was.Head, p.was.Branch, "the most"},
		"a branch of the clone": {p.was.Head, p.was.Head, "refs/heads/main", ""},
		"no branch":             {p.was.Head, p.was.Head, "refs/heads/a..b", "no name of a branch"},
		"a flag":                {p.was.Head, p.was.Head, "refs/heads/--stdin", "no branch"},
		"not there":             {missing, missing, p.was.Branch, "not in what was sent"},
	} {
		s := Sent{Run: run, Path: p.was.Path, Head: c.head, Snapshot: c.snapshot, Branch: c.branch}
		var pack bytes.Buffer
		if what != "not there" && s.Valid() == nil {
			list, args := s.Snapshot+"\n^"+p.was.Head+"\n", []string{"pack-objects", "-q", "--stdout", "--revs"}
			if what == "no tree" {
				list, args = s.Snapshot+"\n"+blob+"\n", args[:3]
			}
			cmd := worktree.Git{Dir: p.host}
			must(t, cmd.Pipe(t.Context(), time.Minute, nil, text(list), &pack, args...))
		}
		if what == "a branch of the clone" {
			sh(t, p.leader, "commit", "-q", "--allow-empty", "-m", "main goes on")
			p.refresh()
			sh(t, p.tree(p.leader), "fetch", "-q", "origin", "main:main")
		}
		before, refs := files(t, p.tree(p.leader)), sh(t, p.leader, "for-each-ref", "refs/heads")
		err := Take(t.Context(), worktree.Git{Dir: p.leader}, p.tree(p.leader), &pack, s, p.was, p.ref())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
		if fmt.Sprint(before) != fmt.Sprint(files(t, p.tree(p.leader))) || refs != sh(t, p.leader, "for-each-ref", "refs/heads") {
			t.Errorf("%s: something has moved", what)
		}
	}
	put(t, p.tree(p.host), "new", strings.Repeat("new\n", 1000))
	s, pack, err := carried(t.Context(), p.host, p.leader, p.tree(p.host), 100)
	must(t, err)
	for what, bad := range map[string][]byte{
		"cut": pack[:len(pack)-21], "garbage": []byte("PACK of lies"),
		"turned": append(bytes.Clone(pack[:40]), append([]byte{pack[40] ^ 1}, pack[41:]...)...), "nothing": nil,
	} {
		if err := Take(t.Context(), worktree.Git{Dir: p.leader}, p.tree(p.leader), bytes.NewReader(bad), s, p.was, p.ref()); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
	must(t, Take(t.Context(), worktree.Git{Dir: p.leader}, p.tree(p.leader), bytes.NewReader(pack), s, p.was, p.ref()))
}
