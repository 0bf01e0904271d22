package task

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A file that git ignores and that the agent has added, but not committed, is the agent's work: it is kept, shown and
// landed, in each form of git's index.
func TestSnapshotHasAddedFiles(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2", "3", "4"} {
		t.Run("version "+version, func(t *testing.T) {
			w := newWorld(t)
			if version == "3" { // git writes it where an entry needs it
				w.put(w.task.Tree, "intended", "later\n")
				w.git(w.task.Tree, "add", "--intent-to-add", "intended")
			} else {
				w.git(w.task.Tree, "update-index", "--index-version", version)
			}
			for _, name := range []string{"ignored", "ignored.d/one", "ignored.d/one.more"} {
				w.put(w.task.Tree, name, "added\n")
			}
			w.put(w.task.Tree, ".gitignore", "ignored*\n")
			w.git(w.task.Tree, "add", "--force", "ignored", "ignored.d")
			w.put(w.task.Tree, "ignored.log", "not added\n")
			p, err := w.task.Snapshot(t.Context())
			w.must(err)
			got := strings.Fields(w.git(w.repo, "ls-tree", "-r", "--name-only", p.Tree))
			for _, want := range []string{"ignored", "ignored.d/one", "ignored.d/one.more"} {
				if !slices.Contains(got, want) {
					t.Errorf("%s is not in %q", want, got)
				}
			}
			ref, err := w.task.Remove(t.Context())
			w.must(err)
			if got := w.git(w.repo, "show", ref+":ignored.d/one.more"); got != "added" {
				t.Errorf("after the removal it is %q", got)
			}
		})
	}
}

// An index that an agent has made up names nothing outside of the folder, and prevents no snapshot.
func TestMadeUpIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(filepath.Dir(w.task.Tree), "outside", "x\n")
	w.must(os.Symlink(filepath.Dir(w.task.Tree), filepath.Join(w.task.Tree, "link")))
	w.git(w.task.Tree, "init", "--quiet", "inner")
	w.put(w.task.Tree, "inner/file", "x\n")
	entry := func(names ...string) string {
		text := "DIRC" + string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 2), uint32(len(names))))
		for _, name := range names {
			one := strings.Repeat("\x00", 62) + name + "\x00"
			text += one + strings.Repeat("\x00", -len(one)&7)
		}
		return text
	}
	index := filepath.Join(w.task.Tree, ".git", "index")
	for name, text := range map[string]string{
		"empty": "", "no index": "hello", "another version": "DIRC\x00\x00\x00\x09\x00\x00\x00\x01",
		"too many": "DIRC\x00\x00\x00\x04\xff\xff\xff\xff" + strings.Repeat("\xff", 200),
		"names": entry("../outside", "/etc/passwd", "link/outside", ".git/config", "inner/file", "inner/.GIT/config", "gone", "", "a//b",
			"a.txt/b"),
	} {
		w.must(os.WriteFile(index, []byte(text), 0o600))
		p, err := w.task.Snapshot(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := strings.Fields(w.git(w.repo, "ls-tree", "-r", "--name-only", p.Tree)); !slices.Equal(got,
			[]string{".gitignore", "a.txt", "link"}) {
			t.Errorf("%s: it has %q", name, got)
		}
	}
	w.must(os.Remove(index))
	w.must(os.Symlink("/etc/passwd", index))
	if _, err := w.task.Snapshot(t.Context()); err != nil {
		t.Error(err)
	}
}

func FuzzIndexNames(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01"+strings.Repeat("\x00", 62)+"\x00a\x00"), 20)
	f.Fuzz(func(_ *testing.T, text []byte, hashBytes int) {
		indexNames(text, 20+12*(hashBytes&1))
	})
}
