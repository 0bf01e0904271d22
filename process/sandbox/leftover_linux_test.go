package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestPoints makes the folders of views and removes them, in each order, and also after processes that did not remove them.
func TestPoints(t *testing.T) {
	for name, c := range map[string]struct {
		before func(work string)
		then   func(t *testing.T, dir, work string, v View, one, two *Points)
		want   []string // what is left in the workspace
	}{
		"the first ends first": {then: func(t *testing.T, _, work string, _ View, one, two *Points) {
			if err := one.Remove(); err != nil || !there(filepath.Join(work, "a", "b")) {
				t.Errorf("%v, or the other one lost its folder", err)
			}
			remove(t, two)
		}},
		"the first ends last": {then: func(t *testing.T, _, work string, _ View, one, two *Points) {
			if err := two.Remove(); err != nil || !there(filepath.Join(work, "a", "b")) {
				t.Errorf("%v, or the other one lost its folder", err)
			}
			remove(t, one)
		}},
		"one is killed": {then: func(t *testing.T, dir, work string, _ View, one, two *Points) {
			killed(one)
			if err := RemovePoints(dir); err != nil || !there(filepath.Join(work, "a", "b")) {
				t.Errorf("%v, or the living one lost its folder", err)
			}
			remove(t, two)
		}},
		"both are killed": {then: func(t *testing.T, dir, _ string, _ View, one, two *Points) {
			killed(one)
			killed(two)
			if err := RemovePoints(dir); err != nil {
				t.Error(err)
			}
		}},
		"a killed one, and the next": {then: func(t *testing.T, dir, _ string, v View, one, two *Points) {
			killed(one)
			killed(two)
			next, err := MakePoints(dir, v)
			if err != nil {
				t.Fatal(err)
			}
			remove(t, next)
		}},
		"a person's folder": {
			before: func(work string) { _ = os.Mkdir(filepath.Join(work, "a"), 0o700) },
			then:   func(t *testing.T, _, _ string, _ View, one, two *Points) { remove(t, one); remove(t, two) },
			want:   []string{"a"},
		},
		"something was put into it": {
			then: func(t *testing.T, _, work string, _ View, one, two *Points) {
				_ = os.WriteFile(filepath.Join(work, "a", "file"), nil, 0o600)
				remove(t, one)
				remove(t, two)
			},
			want: []string{"a", "a/file"},
		},
		"a link in its place": {
			then: func(t *testing.T, _, work string, _ View, one, two *Points) {
				_ = os.RemoveAll(filepath.Join(work, "a"))
				_ = os.MkdirAll(filepath.Join(work, "other", "b"), 0o700)
				_ = os.Symlink("other", filepath.Join(work, "a"))
				remove(t, one)
				remove(t, two)
			},
			want: []string{"a", "other", "other/b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			work, dir := t.TempDir(), t.TempDir()
			if c.before != nil {
				c.before(work)
			}
			past := time.Unix(1000, 7)
			if err := os.Chtimes(work, past, past); err != nil {
				t.Fatal(err)
			}
			v := View{Places: []Place{
				{Path: work, Access: Write},
				{Path: filepath.Join(work, "a", "b"), Access: Read, Make: true},
				{Path: "/x", From: filepath.Join(work, "a"), Access: Read, Make: true},
			}}
			one, err := MakePoints(dir, v)
			if err != nil {
				t.Fatal(err)
			}
			two, err := MakePoints(dir, v)
			if err != nil {
				t.Fatal(err)
			}
			c.then(t, dir, work, v, one, two)
			left := namesBelow(work)
			if !slices.Equal(left, c.want) {
				t.Errorf("left are %q, want %q", left, c.want)
			}
			if info, err := os.Stat(work); err != nil || c.want == nil && !info.ModTime().Equal(past) {
				t.Errorf("the time of the workspace is %v, %v", info.ModTime(), err)
			}
			if files, _ := filepath.Glob(filepath.Join(dir, pointsFolder, "*"+pointSuffix)); len(files) != 0 {
				t.Errorf("%q is left", files)
			}
		})
	}
}

// TestPointThroughALink makes nothing where a link of an agent leads.
func TestPointThroughALink(t *testing.T) {
	work, out := t.TempDir(), t.TempDir()
	if err := os.Symlink(out, filepath.Join(work, "link")); err != nil {
		t.Fatal(err)
	}
	_, err := MakePoints(t.TempDir(), View{Places: []Place{{Path: filepath.Join(work, "link", "made"), Access: Read, Make: true}}})
	if left, _ := os.ReadDir(out); err == nil || len(left) != 0 {
		t.Errorf("%v, and %v was made", err, left)
	}
}

func there(p string) bool { _, err := os.Lstat(p); return !errors.Is(err, fs.ErrNotExist) }

func namesBelow(dir string) (names []string) {
	_ = filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if at, _ := filepath.Rel(dir, p); at != "." {
			names = append(names, at)
		}
		return err
	})
	return names
}

func remove(t *testing.T, p *Points) {
	t.Helper()
	if err := p.Remove(); err != nil {
		t.Error(err)
	}
}

// killed releases the locks, as the kernel does.
func killed(p *Points) {
	for _, f := range p.held {
		f.Close()
	}
}
