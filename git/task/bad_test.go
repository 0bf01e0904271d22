package task

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Repositories that cannot have tasks: the message says why, and what to do.
func TestBadRepositories(t *testing.T) {
	t.Run("no git", func(t *testing.T) {
		w := newRepo(t)
		t.Setenv("PATH", t.TempDir())
		if _, err := Place(t.Context(), w.repo, ""); err == nil || !strings.Contains(err.Error(), "install git") {
			t.Errorf("%v", err)
		}
	})
	t.Run("bare", func(t *testing.T) {
		w := newRepo(t)
		bare := filepath.Join(t.TempDir(), "bare.git")
		w.git(w.repo, "clone", "--quiet", "--bare", ".", bare)
		if _, err := Place(t.Context(), bare, ""); err == nil || !strings.Contains(err.Error(), "bare repository") ||
			strings.Contains(err.Error(), "git init") {
			t.Errorf("%v", err)
		}
	})
	t.Run("of another user", func(t *testing.T) {
		w := newRepo(t)
		if err := os.Chown(filepath.Join(w.repo, ".git"), 65534, 65534); err != nil {
			t.Skip("only root can give a repository away: ", err)
		}
		w.must(os.Chown(w.repo, 65534, 65534))
		if _, err := Place(t.Context(), w.repo, ""); err == nil || !strings.Contains(err.Error(), "safe.directory") ||
			strings.Contains(err.Error(), "git init") {
			t.Errorf("%v", err)
		}
	})
	t.Run("broken", func(t *testing.T) {
		w := newRepo(t)
		w.put(w.repo, ".git/HEAD", "nonsense")
		if _, err := Place(t.Context(), w.repo, ""); err == nil || !strings.Contains(err.Error(), "cannot read the repository") ||
			strings.Contains(err.Error(), "git init") {
			t.Errorf("%v", err)
		}
	})
}

func (w *world) unusualNames() {
	for _, name := range []string{"new\nline", "bad\xff\xfe", "-n", "\"quoted\"", "tab\t", " space ", "ü", "*", ":(top)x", "a\\b"} {
		w.put(w.repo, "names/"+name, "before "+name+"\n")
	}
}

// Repositories that are unusual: a task lands, and changes nothing else. No filter runs, so the folder has what is stored.
func TestUnusualRepositories(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begin func(*world)
		same  []string // files whose stored content stays
		reads map[string]string
	}{
		"pointers of LFS without its program": {begin: func(w *world) {
			w.put(w.repo, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
			w.put(w.repo, "big.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
		}, same: []string{"big.bin"}},
		"a required filter whose program cannot read": {begin: func(w *world) {
			w.put(w.repo, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
			w.put(w.repo, "big.bin", "pointer\n")
			w.git(w.repo, "config", "filter.lfs.clean", "cat")
			w.git(w.repo, "config", "filter.lfs.smudge", "no-such-git-lfs smudge -- %f")
			w.git(w.repo, "config", "filter.lfs.required", "true")
		}, same: []string{"big.bin"}, reads: map[string]string{"big.bin": "pointer\n"}},
		"a filter in the repository's settings": {begin: func(w *world) {
			w.put(w.repo, ".gitattributes", "*.sec filter=rot\n")
			w.git(w.repo, "config", "filter.rot.clean", "tr a-z b-za")
			w.git(w.repo, "config", "filter.rot.smudge", "tr b-za a-z")
			w.put(w.repo, "key.sec", "abc xyz\n")
		}, same: []string{"key.sec"}, reads: map[string]string{"key.sec": "bcd yza\n"}},
		"attributes that are not committed": {begin: func(w *world) {
			w.put(w.repo, ".git/info/attributes", "*.sec filter=rot\n")
			w.git(w.repo, "config", "filter.rot.clean", "tr a-z b-za")
			w.git(w.repo, "config", "filter.rot.smudge", "tr b-za a-z")
			w.put(w.repo, "key.sec", "abc xyz\n")
		}, same: []string{"key.sec"}, reads: map[string]string{"key.sec": "bcd yza\n"}},
		"line ends": {begin: func(w *world) {
			w.git(w.repo, "config", "core.autocrlf", "true")
			w.put(w.repo, "dos.txt", "one\r\ntwo\r\n")
		}, same: []string{"dos.txt"}, reads: map[string]string{"dos.txt": "one\r\ntwo\r\n"}},
		"names": {begin: (*world).unusualNames},
		"shallow": {begin: func(w *world) {
			for range 3 {
				w.git(w.repo, "commit", "--quiet", "--allow-empty", "-m", "more")
			}
			shallow := filepath.Join(filepath.Dir(w.repo), "shallow")
			w.git(w.repo, "clone", "--quiet", "--depth=2", "file://"+w.repo, shallow)
			w.repo = shallow
			w.git(w.repo, "config", "user.name", "A Person")
			w.git(w.repo, "config", "user.email", "person@example.org")
		}},
		"a file of 40 MB": {
			begin: func(w *world) { w.put(w.repo, "huge", strings.Repeat("0123456789abcdef", 40<<16)) },
			same:  []string{"huge"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRepo(t)
			c.begin(w)
			w.git(w.repo, "add", ".")
			w.git(w.repo, "commit", "--quiet", "--allow-empty", "-m", "unusual")
			stored := map[string]string{}
			for _, name := range c.same {
				stored[name] = w.git(w.repo, "rev-parse", "HEAD:"+name)
			}
			task := w.give("T1", "")
			for name, want := range c.reads {
				if text, _ := os.ReadFile(filepath.Join(task.Tree, name)); string(text) != want {
					t.Errorf("in the folder %s is %q", name, text)
				}
			}
			if names, _ := os.ReadDir(filepath.Join(task.Tree, "names")); len(names) > 0 {
				for _, e := range names {
					w.put(task.Tree, "names/"+e.Name(), "after\n")
					w.put(task.Tree, "names/2"+e.Name(), "new\n")
				}
			}
			w.put(task.Tree, "b.txt", "new\n")
			if p, err := task.Snapshot(t.Context()); err != nil ||
				w.git(w.repo, "diff", "--name-only", "HEAD", p.Commit, "--", ".", ":!names") != "b.txt" {
				t.Errorf("changed: %q, %v", w.git(w.repo, "diff", "--name-only", "HEAD", p.Commit), err)
			}
			done, err := w.land(&task)
			if err != nil || done.Commit == "" || w.onBase("b.txt") != "new" {
				t.Fatalf("%+v, %v", done, err)
			}
			for name, blob := range stored {
				if now := w.git(w.repo, "rev-parse", "main:"+name); now != blob {
					t.Errorf("%s was stored as %s and is %s", name, blob, now)
				}
			}
			if got := w.git(w.repo, "status", "--porcelain", "--", ":!.fairlead"); got != "" {
				t.Errorf("the checkout: %s", got)
			}
			if names, _ := os.ReadDir(filepath.Join(w.repo, "names")); len(names) > 0 {
				for _, e := range names {
					text, _ := os.ReadFile(filepath.Join(w.repo, "names", e.Name()))
					if want := map[bool]string{true: "new\n", false: "after\n"}[strings.HasPrefix(e.Name(), "2")]; string(text) != want {
						t.Errorf("%q is %q", e.Name(), text)
					}
				}
			}
			if _, err := task.Remove(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A setup that fails says which command, and with what.
func TestSetupFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.task.Setup = []string{"true", "echo no network; exit 7"}
	var out strings.Builder
	if err := w.task.Prepare(t.Context(), &out); err == nil || !strings.Contains(err.Error(), "exit 7") ||
		!strings.Contains(err.Error(), "exit status 7") || !strings.Contains(out.String(), "no network") {
		t.Errorf("%v, %s", err, &out)
	}
	if p, err := w.task.Snapshot(t.Context()); err != nil || p.Loose {
		t.Errorf("%+v, %v", p, err)
	}
}
