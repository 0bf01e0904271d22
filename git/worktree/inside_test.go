package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// ground is a person's repository, a clone of it that an agent has written, and a program that leaves a mark.
type ground struct {
	*testing.T
	dir, repo, clone, mark string
}

func (g ground) git(dir string, args ...string) string {
	g.Helper()
	cmd := exec.CommandContext(g.Context(), "git",
		append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (g ground) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

func (g ground) put(name, text string, mode os.FileMode) {
	g.Helper()
	at := filepath.Join(g.dir, name)
	g.must(os.MkdirAll(filepath.Dir(at), 0o755)) //nolint:gosec // as git makes it
	g.must(os.WriteFile(at, []byte(text), 0o600))
	g.must(os.Chmod(at, mode))
}

func newGround(t *testing.T) ground {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	g := ground{t, dir, filepath.Join(dir, "repo"), filepath.Join(dir, "clone"), filepath.Join(dir, "mark")}
	g.must(err)
	g.git(dir, "init", "--quiet", "-b", "main", "repo")
	g.put("repo/file", "text\n", 0o644)
	g.git(g.repo, "add", ".")
	g.git(g.repo, "commit", "--quiet", "-m", "first")
	g.git(dir, "clone", "--quiet", "--shared", g.repo, g.clone)
	g.put("program", "#!/bin/sh\necho >> "+g.mark+"\nexit 0\n", 0o755)
	return g
}

// by are the ways to make a view that work here, and none at all.
func by(t *testing.T, each func(t *testing.T)) {
	for _, way := range append(sandbox.Ways(), sandbox.Ability{By: sandbox.ByNothing}) {
		t.Run(string(way.By), func(t *testing.T) {
			wayHere.Store(&way)
			defer wayHere.Store(nil)
			each(t)
		})
	}
}

// No setting, hook, attribute or file of a clone starts a program when Fairlead takes its commits and files, however the view is made. Each
// row has what plain git does that starts it.
func TestClonesPrograms(t *testing.T) {
	rows := map[string]struct{ set, plain string }{
		"fsmonitor":        {"git config core.fsmonitor $P", "git status"},
		"clean":            {"git config filter.x.clean $P", "git add new"},
		"process":          {"git config filter.x.process $P", "git add new"},
		"smudge":           {"git config filter.x.smudge $P", "git checkout -f main"},
		"packObjectsHook":  {"git config --global uploadpack.packObjectsHook $P", "git clone -q --no-local . ../other"},
		"hooks":            {"ln -s $P .git/hooks/post-index-change", "git add new"},
		"hooksPath":        {"mkdir h; ln -s $P h/reference-transaction; git config core.hooksPath h", "git update-ref refs/x HEAD"},
		"included":         {"git config -f .git/more core.fsmonitor $P; git config include.path more", "git status"},
		"worktree setting": {"git config extensions.worktreeConfig true; git config --worktree core.fsmonitor $P", "git status"},
		"alias":            {"git config alias.x !$P", "git x"},
	}
	by(t, func(t *testing.T) {
		for name, row := range rows {
			t.Run(name, func(t *testing.T) {
				g := newGround(t)
				g.put("clone/new", "new\n", 0o644)
				g.put("clone/.gitattributes", "* filter=x\n", 0o644)
				g.put("clone/.git/info/attributes", "* filter=x\n", 0o644)
				shell := func(line string) {
					cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
					cmd.Dir = g.clone
					cmd.Env = append(os.Environ(), "P="+filepath.Join(g.dir, "program"), "HOME="+g.dir,
						"GIT_CONFIG_GLOBAL="+filepath.Join(g.dir, "global"))
					_, _ = cmd.CombinedOutput() // the mark says whether it ran
				}
				shell(row.set)
				shell("rm -f file; " + row.plain)
				if _, err := os.Stat(g.mark); err != nil {
					t.Fatal("plain git does not run it, so it proves nothing")
				}
				g.git(g.clone, "-c", "core.hooksPath=/dev/null", "reset", "--quiet")
				g.must(os.Remove(g.mark))
				clone := Clone{Repo: Git{Dir: g.repo}, Dir: g.clone, Refs: "refs/taken/"}
				in, err := clone.Open(t.Context(), true)
				g.must(err)
				defer in.Close()
				for _, args := range [][]string{
					{"read-tree", "HEAD"},
					{"add", "--all", "--", "."},
					{"status"},
					{"checkout-index", "--all", "--force"},
					{"write-tree"},
				} {
					if _, err := in.Files(t.Context(), nil, args...); err != nil {
						t.Errorf("git %q: %v", args, err)
					}
				}
				g.must(in.Fetch(t.Context(), "+HEAD:refs/taken/head"))
				g.must(in.Close())
				_, _, err = clone.Take(t.Context())
				g.must(err)
				if _, err := os.Stat(g.mark); err == nil {
					t.Error("it was run")
				}
				if got := g.git(g.repo, "rev-parse", "refs/taken/head"); got != g.git(g.repo, "rev-parse", "main") {
					t.Errorf("taken: %s", got)
				}
				if left, _ := filepath.Glob(filepath.Join(g.dir, ".clone*")); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			})
		}
	})
}

// A clone that leads to what it must not have gives nothing of that. The twin is the same commit among its own objects.
func TestClonesOwnObjects(t *testing.T) {
	rows := map[string]string{ // $OTHER is a repository of the person's
		"alternates": "echo $OTHER/.git/objects >> .git/objects/info/alternates; git update-ref HEAD $COMMIT",
		"git file":   "rm -rf .git; echo gitdir: $OTHER/.git > .git",
		"git link":   "rm -rf .git; ln -s $OTHER/.git .git",
		"commondir":  "echo $OTHER/.git > .git/commondir; git update-ref HEAD $COMMIT",
		"objects":    "mv .git/objects o; ln -s $OTHER/.git/objects .git/objects; git update-ref HEAD $COMMIT",
	}
	by(t, func(t *testing.T) {
		if strings.HasSuffix(t.Name(), string(sandbox.ByNothing)) {
			t.Skip("nothing holds it, and `unheld` says so")
		}
		for name, set := range rows {
			for _, own := range []bool{false, true} {
				t.Run(name+map[bool]string{true: ", its own"}[own], func(t *testing.T) {
					g := newGround(t)
					other := filepath.Join(g.dir, "other")
					if own {
						set = "git fetch -q $OTHER && git update-ref HEAD $COMMIT"
					}
					g.git(g.dir, "clone", "--quiet", g.repo, other)
					g.git(other, "commit", "--quiet", "--allow-empty", "-m", "secret")
					commit := g.git(other, "rev-parse", "HEAD")
					cmd := exec.CommandContext(t.Context(), "sh", "-ec", set)
					cmd.Dir, cmd.Env = g.clone, append(os.Environ(), "OTHER="+other, "COMMIT="+commit)
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Fatalf("%v: %s", err, out)
					}
					if got := g.git(g.clone, "rev-parse", "HEAD"); got != commit {
						t.Fatalf("plain git does not see it, so it proves nothing: %s", got)
					}
					_, _, err := Clone{Repo: Git{Dir: g.repo}, Dir: g.clone, Refs: "refs/taken/"}.Take(t.Context())
					has := exec.CommandContext(t.Context(), "git", "-C", g.repo, "cat-file", "-e", commit).Run() == nil
					if has != own {
						t.Errorf("the person's repository has it: %v (%v)", has, err)
					}
				})
			}
		}
	})
}

// What a view works with is removed, also after a process that died; the settings of the person about files count.
func TestInside(t *testing.T) {
	g := newGround(t)
	g.must(os.Remove(filepath.Join(g.clone, ".git", "objects", "info", "alternates"))) // it borrows all the same
	g.put(".clone.git-1-1/x", "of a process that lives\n", 0o600)
	g.put(".clone.git-999999999-1/x", "of none\n", 0o600)
	g.git(g.repo, "config", "core.autocrlf", "true")
	g.put("repo/.git/info/exclude", "ignored\n", 0o644)
	g.put("clone/ignored", "x\n", 0o644)
	g.put("clone/lines", "one\r\ntwo\r\n", 0o644)
	in, err := Clone{Repo: Git{Dir: g.repo}, Dir: g.clone}.Open(t.Context(), false)
	g.must(err)
	defer in.Close()
	_, err = in.Files(t.Context(), nil, "add", "--all", "--", ".")
	g.must(err)
	tree, err := in.Files(t.Context(), nil, "write-tree")
	g.must(err)
	commit, err := in.Commit(t.Context(), nil, "it's \"quoted\"\n$(x) `y`", tree, in.Head)
	g.must(err)
	g.must(in.Fetch(t.Context(), "+"+commit+":refs/taken/1"))
	g.must(in.Fetch(t.Context(), "+HEAD:refs/taken/2")) // several from one view
	if got := strings.Fields(g.git(g.repo, "ls-tree", "-r", "--name-only", commit)); !slices.Equal(got, []string{"file", "lines"}) {
		t.Errorf("it has %q", got)
	}
	if got := g.git(g.repo, "cat-file", "blob", commit+":lines"); got != "one\ntwo" {
		t.Errorf("line ends: %q", got)
	}
	if got := g.git(g.repo, "log", "-1", "--format=%B", commit); got != "it's \"quoted\"\n$(x) `y`" {
		t.Errorf("message: %q", got)
	}
	if err := in.Fetch(t.Context(), "+refs/heads/none:refs/taken/3"); !GitSaidNo(err) {
		t.Errorf("a ref that is not there: %v", err)
	}
	if _, err := in.Files(t.Context(), nil, "cat-file", "-e", strings.Repeat("1", 40)); !GitHasNone(err) && !GitSaidNo(err) {
		t.Errorf("an object that is not there: %v", err)
	}
	if _, err := in.Files(t.Context(), nil, "write-tree"); err != nil {
		t.Errorf("after an error: %v", err)
	}
	if in.By == sandbox.ByNamespaces {
		if _, err := in.Own(t.Context(), "update-ref", "refs/heads/x", "HEAD"); !GitSaidNo(err) {
			t.Errorf("the clone is read-only: %v", err)
		}
	}
	g.must(in.Close())
	if left, _ := filepath.Glob(filepath.Join(g.dir, ".clone*")); len(left) != 1 || filepath.Base(left[0]) != ".clone.git-1-1" {
		t.Errorf("left: %q", left)
	}
}
