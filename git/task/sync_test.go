package task

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/git/forge"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// withRemote gives the repository a remote in a folder, and another clone of it in which others work.
func (w *world) withRemote() (others string) {
	w.Helper()
	dir := filepath.Dir(w.repo)
	remote := filepath.Join(dir, "remote.git")
	others = filepath.Join(dir, "others")
	w.git(dir, "clone", "--quiet", "--bare", w.repo, remote)
	w.git(w.repo, "remote", "add", "origin", remote)
	w.git(dir, "clone", "--quiet", remote, others)
	w.git(others, "config", "user.name", "Another")
	w.git(others, "config", "user.email", "another@example.org")
	return others
}

func (w *world) pushes(others, text string) (commit string) {
	w.Helper()
	w.git(others, "commit", "--quiet", "--allow-empty", "-m", text)
	w.git(others, "push", "--quiet", "--force", "origin", "HEAD")
	return w.git(others, "rev-parse", "HEAD")
}

func (w *world) syncs() Synced {
	w.Helper()
	s, err := w.task.Sync(w.Context())
	w.must(err)
	return s
}

// A sync moves remote-tracking refs and nothing else, and says what has come. The folder gets it from its origin.
func TestSync(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	others := w.withRemote()
	if got := w.syncs(); !reflect.DeepEqual(got, Synced{Remote: "origin", Branches: []SyncedBranch{{Name: "origin/main", Made: true}}}) {
		t.Errorf("the first one: %+v", got)
	}
	w.pushes(others, "one")
	newest := w.pushes(others, "two")
	w.git(others, "tag", "v1")
	w.git(others, "push", "--quiet", "origin", "v1", "HEAD:side")
	w.git(w.repo, "config", "fetch.prune", "true")
	w.git(w.repo, "update-ref", "refs/remotes/origin/gone", "HEAD")
	before := w.git(w.repo, "for-each-ref", "refs/heads", "refs/tags", "refs/fairlead")
	want := Synced{
		Remote: "origin", Behind: 2, Branches: []SyncedBranch{{Name: "origin/main", New: 2}, {Name: "origin/side", Made: true}},
	}
	if got := w.syncs(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := w.git(w.repo, "for-each-ref", "refs/heads", "refs/tags", "refs/fairlead"); got != before {
		t.Errorf("other refs were %s, and are %s", before, got)
	}
	w.git(w.repo, "rev-parse", "--verify", "refs/remotes/origin/gone")
	if _, err := os.Lstat(filepath.Join(w.repo, ".git", "FETCH_HEAD")); err == nil {
		t.Error("it has written FETCH_HEAD")
	}
	w.git(w.task.Tree, "fetch", "--quiet", "origin", "refs/remotes/origin/main")
	if got := w.git(w.task.Tree, "rev-parse", "FETCH_HEAD"); got != newest {
		t.Errorf("the folder got %s, and not %s", got, newest)
	}
	w.git(w.repo, "commit", "--quiet", "--allow-empty", "-m", "mine")
	w.git(others, "reset", "--quiet", "--hard", "HEAD~1")
	w.pushes(others, "instead")
	want = Synced{Remote: "origin", Behind: 2, Ahead: 1, Branches: []SyncedBranch{{Name: "origin/main", New: 1, Lost: 1}}}
	if got := w.syncs(); !reflect.DeepEqual(got, want) {
		t.Errorf("rewritten: %+v, want %+v", got, want)
	}
	if got := w.syncs(); len(got.Branches) != 0 || got.Behind != 2 {
		t.Errorf("nothing has come: %+v", got)
	}
}

// Of what a person has set only remote-tracking refs are fetched: a mirror would move their branches.
func TestSyncSpecs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	others := w.withRemote()
	w.pushes(others, "one")
	w.git(others, "push", "--quiet", "origin", "HEAD:side", "HEAD:other")
	for name, c := range map[string]struct {
		fetch []string
		want  string
	}{
		"a mirror":    {[]string{"+refs/*:refs/*"}, "refs/remotes/origin/main"},
		"nothing":     {nil, "refs/remotes/origin/main"},
		"one branch":  {[]string{"+refs/heads/side:refs/remotes/origin/side"}, "refs/remotes/origin/side"},
		"all but one": {[]string{"+refs/heads/*:refs/remotes/origin/*", "^refs/heads/other"}, "refs/remotes/origin/main\nrefs/remotes/origin/side"},
		"a mirror and a branch": {
			[]string{"+refs/*:refs/*", "+refs/heads/side:refs/remotes/elsewhere/side"},
			"refs/remotes/elsewhere/side",
		},
	} {
		_, _ = (&play{T: t}).try(w.repo, "config", "--unset-all", "remote.origin.fetch")
		for _, spec := range c.fetch {
			w.git(w.repo, "config", "--add", "remote.origin.fetch", spec)
		}
		main := w.git(w.repo, "rev-parse", "main")
		s := w.syncs()
		if got := w.git(w.repo, "for-each-ref", "--format=%(refname)", "refs/remotes", "refs/heads/side"); got != c.want {
			t.Errorf("%s: it has %s, want %s", name, got, c.want)
		}
		if got := w.git(w.repo, "rev-parse", "main"); got != main {
			t.Errorf("%s: main has moved", name)
		}
		if is := strings.Contains(c.want, "origin/main"); is != (s.Behind == 1) || !is && s.Behind != -1 {
			t.Errorf("%s: behind is %d", name, s.Behind)
		}
		for ref := range strings.Lines(c.want) {
			w.git(w.repo, "update-ref", "-d", strings.TrimSpace(ref))
		}
	}
}

// timeOver is a context whose time is over when its channel is closed.
type timeOver struct {
	context.Context
	over chan struct{}
}

func (t timeOver) Done() <-chan struct{} { return t.over }

func (t timeOver) Err() error {
	select {
	case <-t.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// What cannot be fetched is said, with what to do, and no program can wait for a person.
func TestSyncRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := filepath.Dir(w.repo)
	asked := filepath.Join(dir, "asked")
	hangs := filepath.Join(dir, "hangs")
	w.must(os.WriteFile(hangs, []byte("#!/bin/sh\necho \"$@\" > "+asked+"\nexec sleep 600\n"), 0o700)) //nolint:gosec // a program
	w.must(syscall.Mkfifo(asked, 0o600))
	asks := filepath.Join(dir, "asks")
	w.must(os.WriteFile(asks, []byte("#!/bin/sh\nread -r word < /dev/tty || exit 1\nexec sleep 600\n"), 0o700)) //nolint:gosec // a program
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	_, err := w.task.Sync(t.Context())
	if blocked := (*Blocked)(nil); !errors.As(err, &blocked) ||
		err.Error() != "the repository has no remote origin; add it with git remote add origin URL, or name another one with tasks.remote in fairlead.yaml" {
		t.Errorf("without a remote: %v", err)
	}
	byHand := "git -C " + w.repo + " fetch origin"
	for _, c := range []struct {
		name, url, key, value string
		hangs                 bool
		code                  forge.Code
		says                  string
	}{
		{"a login over HTTP", server.URL + "/x.git", "core.askPass", hangs, false, forge.NotSignedIn, "Fairlead asks for no password"},
		{"nothing there", gone.URL + "/x.git", "", "", false, forge.Offline, "try again when the remote answers"},
		{"no repository", filepath.Join(dir, "none"), "", "", false, forge.Refused, "see what `" + byHand},
		{"a password of ssh", "ssh://example.invalid/x.git", "core.sshCommand", asks, false, forge.Refused, "see what `" + byHand},
		{"a program that hangs", "ssh://example.invalid/x.git", "core.sshCommand", hangs, true, forge.Offline, "git fetch took too long and was ended"},
	} {
		_, _ = (&play{T: t}).try(w.repo, "remote", "remove", "origin")
		w.git(w.repo, "remote", "add", "origin", c.url)
		if c.key != "" {
			w.git(w.repo, "config", c.key, c.value)
		}
		ctx := t.Context()
		if c.hangs { // the time is over when the program hangs
			over := timeOver{ctx, make(chan struct{})}
			ctx = over
			go func() {
				said, err := os.ReadFile(asked)
				if err != nil || !strings.Contains(string(said), "-o BatchMode=yes") {
					t.Errorf("ssh is started with %s, %v", said, err)
				}
				close(over.over)
			}()
		}
		_, err := w.task.Sync(ctx)
		fault, is := errors.AsType[*forge.Fault](err)
		if !is || fault.Code != c.code || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "remote origin: git fetch") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Two fetches of one repository wait for each other, and the second one does not wait without end.
func TestSyncOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withRemote()
	release, err := file.Lock(filepath.Join(w.repo, ".git", fetchLock))
	w.must(err)
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	_, err = w.task.Sync(ctx)
	if blocked := (*Blocked)(nil); !errors.As(err, &blocked) || !strings.Contains(err.Error(), "another fetch in "+w.repo+" has not ended yet") {
		t.Errorf("%v", err)
	}
	if _, got := (&play{T: t}).try(w.repo, "rev-parse", "--verify", "--quiet", "refs/remotes/origin/main"); got == nil {
		t.Error("it has fetched")
	}
	done := make(chan error)
	go func() {
		_, err := w.task.Sync(t.Context())
		done <- err
	}()
	release()
	w.must(<-done)
	w.git(w.repo, "rev-parse", "--verify", "refs/remotes/origin/main")
}
