package login

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pair is a store, with functions that write and read its two files.
type pair struct {
	t                *testing.T
	store            Store
	state            string
	person, sessions string
	at               time.Time
}

const long = 10 * time.Minute // ago: nothing is being written

func newPair(t *testing.T, inPlace bool) *pair {
	t.Helper()
	base := t.TempDir()
	p := &pair{t: t, state: filepath.Join(base, "state"), at: time.Now().Add(-long)}
	if err := os.Mkdir(filepath.Join(base, "home"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.store = In(p.state, "qwen", filepath.Join(base, "home"), inPlace)
	p.person, p.sessions = filepath.Join(base, "home", "oauth_creds.json"), filepath.Join(p.store.Folder, "oauth_creds.json")
	if err := p.store.Keep(); err != nil {
		t.Fatal(err)
	}
	return p
}

func creds(n int, more string) string {
	return fmt.Sprintf(`{"access_token":"a%d","expiry_date":%d,"refresh_token":"r%d"%s}`, n, n, n, more)
}

func (p *pair) write(path, text string) {
	p.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.at = p.at.Add(time.Second)
	if err := os.Chtimes(path, p.at, p.at); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pair) read(path string) string {
	v, err := look(path) // a pipe would wait for a writer
	if err != nil || v.info == nil {
		return "none"
	}
	return strings.Join(strings.Fields(string(v.text)), "")
}

// TestSync is the table of what both files are after one look.
func TestSync(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		person, sessions string // what is written; none: there is none
		later            bool   // the person's is written later
		settled          bool
		want             string // both; or the person's, a space and the sessions'
		said             string
	}{
		"the first":               {person: creds(1, ""), sessions: "none", want: creds(1, "")},
		"a refresh in a session":  {person: creds(1, ""), sessions: creds(2, ""), want: creds(2, "")},
		"a refresh of the person": {person: creds(2, ""), sessions: creds(1, ""), want: creds(2, "")},
		"older, written later":    {person: creds(1, ""), sessions: creds(2, ""), later: true, want: creds(2, "")},
		"the person's settings":   {person: creds(1, `,"x":1`), sessions: creds(1, ""), later: true, want: creds(1, `,"x":1`)},
		"another account of the person": {
			person: creds(1, `,"resource_url":"b"`), sessions: creds(2, `,"resource_url":"a"`), later: true, want: creds(1, `,"resource_url":"b"`),
		},
		"another account in a session": {
			person: creds(1, `,"resource_url":"a"`), sessions: creds(2, `,"resource_url":"b"`), said: "another account",
			want: creds(1, `,"resource_url":"a"`) + " " + creds(2, `,"resource_url":"b"`),
		},
		"another account, settled": {
			person: creds(1, `,"resource_url":"a"`), sessions: creds(2, `,"resource_url":"b"`), said: "another account", settled: true,
			want: creds(1, `,"resource_url":"a"`),
		},
		"more than tokens": {
			person: creds(1, ""), sessions: creds(2, `,"hooks":{}`), said: "more than tokens", want: creds(2, "") + " " + creds(2, `,"hooks":{}`),
		},
		"more than tokens, settled":  {person: creds(1, ""), sessions: creds(2, `,"hooks":{}`), said: "more than tokens", settled: true, want: creds(2, "")},
		"half":                       {person: creds(1, ""), sessions: "{half", want: creds(1, "") + " {half"},
		"half, settled":              {person: creds(1, ""), sessions: "{half", said: "no JSON", settled: true, want: creds(1, "")},
		"half of the person":         {person: "{half", sessions: creds(1, ""), later: true, want: "{half " + creds(1, "")},
		"none of JSON":               {person: "secret", sessions: "none", settled: true, want: "secret"},
		"signed out":                 {person: "none", sessions: creds(1, ""), want: "none " + creds(1, "")},
		"signed out, settled":        {person: "none", sessions: creds(1, ""), settled: true, want: "none"},
		"signed out in a session":    {person: creds(1, ""), sessions: "none", settled: true, want: creds(1, "")},
		"there is none":              {person: "none", sessions: "none", settled: true, want: "none"},
		"too large":                  {person: creds(1, ""), sessions: creds(2, "") + strings.Repeat(" ", bytesMax), settled: true, said: "larger", want: creds(1, "")},
		"too large and not settled.": {person: creds(1, ""), sessions: creds(2, "") + strings.Repeat(" ", bytesMax), want: creds(1, "") + " " + creds(2, "")},
	} {
		for _, inPlace := range []bool{false, true} {
			p := newPair(t, inPlace)
			files := []string{p.person, p.sessions}
			texts := map[string]string{p.person: c.person, p.sessions: c.sessions}
			if c.later {
				files[0], files[1] = files[1], files[0]
			}
			for _, file := range files {
				if texts[file] != "none" {
					p.write(file, texts[file])
				}
			}
			before, _ := os.Stat(p.sessions)
			said, err := p.store.Sync(c.settled)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			person, sessions, two := strings.Cut(c.want, " ")
			if !two {
				sessions = person
			}
			if got := p.read(p.person); got != person {
				t.Errorf("%s, in place %t: the person's is %s, want %s", name, inPlace, got, person)
			}
			if got := p.read(p.sessions); got != sessions {
				t.Errorf("%s, in place %t: the sessions' is %s, want %s", name, inPlace, got, sessions)
			}
			if all := strings.Join(said, "; "); c.said == "" && all != "" || !strings.Contains(all, c.said) || strings.Contains(all, "r2") {
				t.Errorf("%s: said is %q, want %q", name, all, c.said)
			}
			if after, err := os.Stat(p.sessions); inPlace && before != nil && err == nil && !os.SameFile(before, after) {
				t.Errorf("%s: the file that is mounted was replaced", name)
			}
			if again, err := p.store.Sync(false); c.settled && (err != nil || len(again) > 0) {
				t.Errorf("%s: the second time: %q, %v", name, again, err)
			}
		}
	}
}

// TestPersonsFile checks that the person's file keeps its mode, its link and its folder.
func TestPersonsFile(t *testing.T) {
	t.Parallel()
	p := newPair(t, true)
	real := filepath.Join(filepath.Dir(filepath.Dir(p.person)), "dots.json")
	p.write(real, creds(1, ""))
	if err := os.Chmod(real, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, p.person); err != nil {
		t.Fatal(err)
	}
	p.write(p.sessions, creds(2, ""))
	if _, err := p.store.Sync(false); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(p.person)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 || p.read(real) != creds(2, "") {
		t.Errorf("the link is %v, %v, and its file %s", info, err, p.read(real))
	}
	if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file is %v, %v", info, err)
	}
	for _, dir := range []string{filepath.Dir(real), filepath.Dir(p.person)} {
		if names, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(names) > 0 {
			t.Errorf("left are %q, %v", names, err)
		}
	}
}

// TestPlanted checks that what a program puts in the place of its file is not followed, and is the person's file again.
func TestPlanted(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(at, victim string) error{
		"a link":   func(at, victim string) error { return os.Symlink(victim, at) },
		"a pipe":   func(at, _ string) error { return syscall.Mkfifo(at, 0o600) },
		"a folder": func(at, _ string) error { return os.MkdirAll(filepath.Join(at, "full"), 0o700) },
	} {
		p := newPair(t, false)
		victim := filepath.Join(filepath.Dir(p.state), "victim")
		p.write(victim, creds(9, ""))
		p.write(p.person, creds(1, ""))
		if err := plant(p.sessions, victim); err != nil {
			t.Fatal(err)
		}
		if _, err := p.store.Sync(true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		info, err := os.Lstat(p.sessions)
		if err != nil || !info.Mode().IsRegular() || p.read(p.sessions) != creds(1, "") || p.read(p.person) != creds(1, "") ||
			p.read(victim) != creds(9, "") {
			t.Errorf("%s: it is %v, %v; person %s, sessions %s", name, info, err, p.read(p.person), p.read(p.sessions))
		}
	}
}

// TestLocked checks that a lock of the person's folder that lasts is an error with words, and that nothing is written.
func TestLocked(t *testing.T) {
	t.Parallel()
	p := newPair(t, false)
	p.write(p.person, creds(1, ""))
	p.write(p.sessions, creds(2, ""))
	unlock, err := lockFolder(filepath.Dir(p.person))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.store.Sync(false); err == nil || !strings.Contains(err.Error(), "another program holds a lock") {
		t.Errorf("the error is %v", err)
	}
	if got := p.read(p.person); got != creds(1, "") {
		t.Errorf("the person's is %s", got)
	}
	unlock()
	if _, err := p.store.Sync(false); err != nil || p.read(p.person) != creds(2, "") {
		t.Errorf("then it is %s, %v", p.read(p.person), err)
	}
}

// TestStores checks that stores are found again, that one without a folder is forgotten, and that there is a limit.
func TestStores(t *testing.T) {
	t.Parallel()
	p := newPair(t, true)
	other := Beside(p.state, "claude", "/home/x/.claude", filepath.Join(p.state, "programs", "coder"))
	for range 2 {
		if err := other.Keep(); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Stores(p.state)
	if err != nil || len(all) != 2 || all[0] != other || all[1] != p.store {
		t.Fatalf("they are %+v, %v", all, err)
	}
	if err := os.RemoveAll(other.Folder); err != nil {
		t.Fatal(err)
	}
	if all, err = Stores(p.state); err != nil || len(all) != 1 {
		t.Errorf("they are %+v, %v", all, err)
	}
	for i := range storesMax - 1 {
		if err := Beside(p.state, "claude", "/home/x/.claude", filepath.Join(p.state, "programs", fmt.Sprint(i))).Keep(); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Keep(); err == nil || !strings.Contains(err.Error(), "which is the limit") {
		t.Errorf("the error is %v", err)
	}
	if all, err := Stores(filepath.Join(p.state, "none")); err != nil || len(all) != 0 {
		t.Errorf("without a folder they are %v, %v", all, err)
	}
}
