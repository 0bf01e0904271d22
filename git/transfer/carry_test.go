package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/git/worktree/store"
	"github.com/fairlead-dev/fairlead/internal/test/template"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

const run = "r1"

// sh runs git as a person does.
func sh(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git",
		append([]string{"-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"},
			args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v in %s: %v\n%s", args, dir, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pair is a leader with the checkout of a run, and another host.
type pair struct {
	*testing.T
	leader, host string
	was          Sent
	n            int
}

// begun gives a pair of its own, whose leader's repository was made with further words for `git init`. Git makes the first one of a kind in
// some thirty processes; the others are copies.
func begun(t *testing.T, initArgs ...string) *pair {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	found, _ := made.LoadOrStore(strings.Join(initArgs, " "), &madePair{})
	m := found.(*madePair)
	m.once.Do(func() {
		first := filepath.Join(dir, ".first")
		build(t, first, initArgs)
		m.tree = template.Of(t, first)
		must(t, os.RemoveAll(first))
	})
	if m.tree == nil {
		t.Fatal("another test was to make this pair, and has failed")
	}
	m.tree.To(t, dir)
	return pairIn(t, dir)
}

// made are the pairs that were made in this process, by the words for `git init`.
var made sync.Map

type madePair struct {
	once sync.Once
	tree *template.Tree
}

func pairIn(t *testing.T, dir string) *pair {
	return &pair{T: t, leader: filepath.Join(dir, "leader"), host: filepath.Join(dir, "host")}
}

func build(t *testing.T, dir string, initArgs []string) {
	t.Helper()
	p := pairIn(t, dir)
	must(t, errors.Join(os.MkdirAll(p.leader, 0o755), os.Mkdir(p.host, 0o755)))
	sh(t, p.leader, append([]string{"init", "-q", "--template="}, initArgs...)...)
	put(t, p.leader, "README", "one\ntwo\nthree\n")
	put(t, p.leader, "src/a.go", "package a\n")
	put(t, p.leader, ".gitignore", "*.o\n/build/\n.agents/\n")
	must(t, os.Symlink("README", filepath.Join(p.leader, "link")))
	put(t, p.leader, "run.sh", "#!/bin/sh\n")
	must(t, os.Chmod(filepath.Join(p.leader, "run.sh"), 0o755))
	sh(t, p.leader, "add", "-A")
	sh(t, p.leader, "commit", "-q", "-m", "first")
	p.clone()
}

// clone makes the leader's checkout, which shares Fairlead's copy of the repository.
func (p *pair) clone() {
	p.Helper()
	p.refresh()
	w := worktree.Checkout{
		Id: run, Branch: "fairlead/r1", Repo: worktree.Git{Dir: p.leader}, Dir: p.tree(p.leader),
		Store: store.Of(p.leader).Dir,
	}
	must(p.T, os.MkdirAll(filepath.Dir(w.Dir), 0o755))
	must(p.T, w.Make(p.Context(), sh(p.T, p.leader, "rev-parse", "HEAD")))
}

// refresh brings the newest commits to where the leader's checkout fetches from.
func (p *pair) refresh() {
	p.Helper()
	must(p.T, store.Of(p.leader).Refresh(p.Context(), p.leader, sh(p.T, p.leader, "symbolic-ref", "--short", "HEAD")))
}

func (p *pair) tree(root string) string { return filepath.Join(root, ".agents", "worktrees", run) }
func (p *pair) ref() string             { return fmt.Sprintf("refs/fairlead/steps/r1/s/%d", p.n) }

func carried(ctx context.Context, from, to string, tree string, most int) (Sent, []byte, error) {
	s, err := Snapshot(ctx, worktree.Git{Dir: from}, from, tree, run)
	if err != nil {
		return s, nil, err
	}
	var have []string
	if _, err := os.Lstat(filepath.Join(to, ".git")); err == nil {
		if have, err = Have(ctx, worktree.Git{Dir: to}, most); err != nil {
			return s, nil, err
		}
	}
	var b bytes.Buffer
	err = Pack(ctx, worktree.Git{Dir: from}, s, have, &b)
	return s, b.Bytes(), err
}

// send carries the leader's checkout to the host, and fetch the other way.
func (p *pair) send(known string) Sent {
	p.Helper()
	s, pack, err := carried(p.Context(), p.leader, p.host, p.tree(p.leader), 1000)
	must(p.T, err)
	if s, err = ParseSent(s.String()); err != nil {
		p.Fatal(err)
	}
	must(p.T, Unpack(p.Context(), p.host, bytes.NewReader(pack), s, known))
	p.was = s
	p.equal()
	sh(p.T, p.tree(p.host), "diff", "--cached", "--exit-code") // nothing is staged
	return s
}

func (p *pair) fetch() (Sent, error) {
	p.Helper()
	p.n++
	s, pack, err := carried(p.Context(), p.host, p.leader, p.tree(p.host), 1000)
	must(p.T, err)
	return s, Take(p.Context(), worktree.Git{Dir: p.leader}, p.tree(p.leader), bytes.NewReader(pack), s, p.was, p.ref())
}

// files has the content, kind and mode of what is carried: all but .git, ignored files and empty folders.
func files(t *testing.T, tree string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(tree, path)
		if d.IsDir() && (name == "build" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if d.IsDir() || d.Name() == ".git" || strings.HasSuffix(name, ".o") {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.Type() == fs.ModeSymlink {
			target, err := os.Readlink(path)
			all[name] = "-> " + target
			return err
		}
		content, err := os.ReadFile(path)
		all[name] = fmt.Sprintf("%v %s", info.Mode()&0o100 != 0, content)
		return err
	}))
	return all
}

// equal compares the two checkouts: all files, the commit, the branch, and what git says of them.
func (p *pair) equal() {
	p.Helper()
	a, b := files(p.T, p.tree(p.leader)), files(p.T, p.tree(p.host))
	if !maps.Equal(a, b) {
		for name := range a {
			if a[name] != b[name] {
				p.Errorf("%q: leader %.200q, host %.200q", name, a[name], b[name])
			}
		}
		for name := range b {
			if _, is := a[name]; !is {
				p.Errorf("%q is on the host only", name)
			}
		}
		p.FailNow()
	}
	for _, args := range [][]string{{"rev-parse", "HEAD"}, {"rev-parse", "--symbolic-full-name", "HEAD"}} {
		if a, b := sh(p.T, p.tree(p.leader), args...), sh(p.T, p.tree(p.host), args...); a != b {
			p.Fatalf("git %v: leader %s, host %s", args, a, b)
		}
	}
	sh(p.T, p.tree(p.leader), "rev-list", "--objects", "HEAD") // it has all of it with what it borrows
}

// TestCarryRounds edits both checkouts in turns, at random.
func TestCarryRounds(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 1))
			p := begun(t, "--object-format="+format)
			p.send("")
			for range testsize.Pick(4, 12, 12) {
				edit(t, random, p.tree(p.host))
				s, err := p.fetch()
				must(t, err)
				p.equal()
				if s != p.was { // otherwise nothing came back, and what is staged here stays so
					sh(t, p.tree(p.leader), "diff", "--cached", "--exit-code")
				}
				if at := sh(t, p.leader, "rev-parse", p.ref()); at != s.Snapshot {
					t.Fatalf("%s is at %s", p.ref(), at)
				}
				edit(t, random, p.tree(p.leader))
				p.send(s.Snapshot)
			}
			sh(t, p.leader, "fsck", "--strict")
			sh(t, p.host, "fsck", "--strict")
		})
	}
}

// TestLeftOnHost sends again what replaces work on the host that never came back.
func TestLeftOnHost(t *testing.T) {
	t.Parallel()
	p := begun(t)
	p.send("")
	there := p.tree(p.host)
	put(t, there, "README", "committed\n")
	sh(t, there, "commit", "-q", "-a", "-m", "by an agent")
	lost := sh(t, there, "rev-parse", "HEAD")
	put(t, there, "src/a.go", "changed\n")
	put(t, there, "draft", "new\n")
	p.send("")
	kept := strings.Fields(sh(t, p.host, "for-each-ref", "--format=%(objectname)", "refs/fairlead/left/r1"))
	found := 0
	for _, commit := range kept {
		if commit == lost {
			found++
		} else if sh(t, p.host, "show", commit+":draft")+sh(t, p.host, "show", commit+":src/a.go")+
			sh(t, p.host, "rev-parse", commit+"^") == "newchanged"+lost {
			found++
		}
	}
	if found != 2 || len(kept) != 2 {
		t.Errorf("%d of 2 are kept: %v", found, kept)
	}
	p.send("")
	if again := sh(t, p.host, "for-each-ref", "--format=%(objectname)", "refs/fairlead/left/r1"); again != strings.Join(kept, "\n") {
		t.Errorf("sending it again left %s", again)
	}
}

// TestNothingCameBack leaves what a person wrote meanwhile, unless an update is half done.
func TestNothingCameBack(t *testing.T) {
	t.Parallel()
	p := begun(t)
	p.send("")
	put(t, p.tree(p.leader), "README", "of a person\n")
	s, err := p.fetch()
	must(t, err)
	if got := files(t, p.tree(p.leader))["README"]; got != "false of a person\n" || sh(t, p.leader, "rev-parse", p.ref()) != s.Snapshot {
		t.Errorf("README is %q", got)
	}
	sh(t, p.leader, "update-ref", "refs/fairlead/carry/r1/going", "HEAD")
	if _, err := p.fetch(); err == nil {
		t.Error("an update that was half done is taken for none")
	} else if _, is := errors.AsType[*Changed](err); !is {
		t.Error(err)
	}
	// What is staged on the host, and nowhere else, is kept, and is staged there no longer.
	p = begun(t)
	p.send("")
	put(t, p.tree(p.host), "README", "staged\n")
	sh(t, p.tree(p.host), "add", "README")
	put(t, p.tree(p.host), "README", "one\ntwo\nthree\n")
	p.send(p.was.Snapshot)
	if kept := sh(t, p.host, "for-each-ref", "--format=%(objectname)", "refs/fairlead/left/r1"); sh(t, p.host, "show",
		kept+":README") != "staged" {
		t.Errorf("kept: %q", kept)
	}
}

// TestBranchOfHost comes back on a new branch, and without one.
func TestBranchOfHost(t *testing.T) {
	t.Parallel()
	p := begun(t)
	p.send("")
	for _, args := range [][]string{
		{"checkout", "-q", "-b", "agents/own"},
		{"checkout", "-q", "--detach"},
		{"checkout", "-q", "fairlead/r1"},
	} {
		sh(t, p.tree(p.host), args...)
		put(t, p.tree(p.host), "README", strings.Join(args, " "))
		sh(t, p.tree(p.host), "commit", "-q", "-a", "-m", "by an agent")
		_, err := p.fetch()
		if args[len(args)-1] == "fairlead/r1" { // the leader's is on another commit now, and no longer what was sent
			if changed, is := errors.AsType[*Changed](err); !is || !strings.Contains(changed.Why, "another branch") {
				t.Fatal(err)
			}
			continue
		}
		must(t, err)
		p.equal()
		p.send("")
	}
}

var names = []string{
	"README", "src/a.go", "src/b.go", "src/deep/er/c.go", "src", "new\nline", "tab\tname", "latin-\xe9", "quote\"d", "-flag", "--stdin",
	"spaces and spaces",
	"link", "run.sh", "x.o", "build/out", "dir/x", "dir", "dir-a", "dir/y/z",
}

// edit does what an agent does to a checkout.
func edit(t *testing.T, random *rand.Rand, tree string) {
	t.Helper()
	for range 1 + random.IntN(12) {
		name := names[random.IntN(len(names))]
		path := filepath.Join(tree, name)
		switch random.IntN(9) {
		case 0, 1, 2: // a file, also in place of a folder or a link, with its folders in place of files
			clearFor(t, tree, name)
			put(t, tree, name, strings.Repeat(fmt.Sprintf("%d\n", random.IntN(50)), random.IntN(40)))
		case 3: // nothing there, also no file or link in place of its folders
			clearFor(t, tree, name)
		case 4:
			clearFor(t, tree, name)
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must(t, os.Symlink([]string{"README", "/etc/passwd", "../../..", "src", "no\xffwhere"}[random.IntN(5)], path))
		case 5:
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
				must(t, os.Chmod(path, 0o644|fs.FileMode(random.IntN(2)*0o111)))
			}
		case 6:
			sh(t, tree, "add", "-A")
		case 7:
			sh(t, tree, "add", "-A")
			sh(t, tree, "commit", "-q", "--allow-empty", "-m", "by an agent")
		case 8:
			if random.IntN(3) == 0 {
				sh(t, tree, "add", "-A")
				sh(t, tree, "commit", "-q", "--amend", "--allow-empty", "-m", "amended")
			}
		}
	}
}

// clearFor makes room for a name.
func clearFor(t *testing.T, tree, name string) {
	t.Helper()
	parts := strings.Split(name, "/")
	for i := range parts {
		path := filepath.Join(append([]string{tree}, parts[:i+1]...)...)
		if info, err := os.Lstat(path); err == nil && (i == len(parts)-1 || !info.IsDir()) {
			must(t, os.RemoveAll(path))
		}
	}
}
