package remote_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/git/transfer"
	"github.com/fairlead-dev/fairlead/hosts/local"
	"github.com/fairlead-dev/fairlead/hosts/remote"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@b.c"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// breaking is a host whose answers and requests break off a number of times, each after some bytes.
type breaking struct {
	http.Handler
	requests, answers atomic.Int64
}

type cutAnswer struct {
	http.ResponseWriter
	left int
}

func (c *cutAnswer) Write(b []byte) (int, error) {
	if c.left -= len(b); c.left < 0 {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		return 0, errors.New("the connection broke")
	}
	return c.ResponseWriter.Write(b)
}

func (b *breaking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if (r.Method == http.MethodPut || r.Method == http.MethodDelete) && b.requests.Add(-1) >= 0 {
		panic(http.ErrAbortHandler)
	}
	if r.Method == http.MethodGet && r.URL.Path != wire.TreesRoute && b.answers.Add(-1) >= 0 {
		w = &cutAnswer{w, 1}
	}
	b.Handler.ServeHTTP(w, r)
}

// lateTree fetches what came late: the checkout here stays as it is.
func lateTree(t *testing.T, trees *remote.Trees, was transfer.Sent, checkout, there string) {
	t.Helper()
	const late = "refs/fairlead/late/r1/work/coder-1"
	if isNew, err := trees.FetchLate(t.Context(), was, late); err != nil || isNew {
		t.Errorf("nothing is new: %t, %v", isNew, err)
	}
	noError(t, os.WriteFile(filepath.Join(there, "late"), []byte("late\n"), 0o600))
	if isNew, err := trees.FetchLate(t.Context(), was, late); err != nil || !isNew || gitIn(t, trees.Root, "show", late+":late") != "late" {
		t.Errorf("what came late: %t, %v", isNew, err)
	}
	if _, err := os.Lstat(filepath.Join(checkout, "late")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what came late is in the checkout: %v", err)
	}
	if _, err := trees.FetchLate(t.Context(), was, "refs/heads/late"); err == nil {
		t.Error("a branch was made of what came late")
	}
	noError(t, os.Remove(filepath.Join(there, "late")))
}

// TestTreesTravel sends a checkout and files to a host and takes them back, over HTTP/1 and HTTP/2, with connections that break.
func TestTreesTravel(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "http1", true: "http2"}[http2], func(t *testing.T) {
			t.Parallel()
			leader, host := t.TempDir(), t.TempDir()
			gitIn(t, leader, "init", "-q", "-b", "main")
			noError(t, os.WriteFile(filepath.Join(leader, "a"), []byte("one\n"), 0o600))
			gitIn(t, leader, "add", "a")
			gitIn(t, leader, "commit", "-q", "-m", "first")
			checkout := filepath.Join(leader, ".agents", "worktrees", "r1")
			gitIn(t, leader, "branch", "fairlead/r1")
			gitIn(t, leader, "clone", "-q", "--shared", "--branch", "fairlead/r1", ".", checkout)
			noError(t, os.WriteFile(filepath.Join(checkout, "draft"), []byte(strings.Repeat("draft\n", 100_000)), 0o600))

			mux := http.NewServeMux()
			(&local.Trees{Root: host, Log: slog.New(slog.DiscardHandler)}).Routes(mux)
			broken := &breaking{Handler: mux}
			server := httptest.NewUnstartedServer(broken)
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
			server.EnableHTTP2 = http2
			server.StartTLS()
			defer server.Close()
			trees := &remote.Trees{
				Root: leader,
				Dial: func(context.Context) (*http.Client, string, error) { return server.Client(), server.URL, nil },
			}

			broken.requests.Store(2)
			was, err := trees.Send(t.Context(), "r1", checkout, nil)
			noError(t, err)
			there := filepath.Join(host, ".agents", "worktrees", "r1")
			noError(t, os.WriteFile(filepath.Join(there, "a"), []byte("two\n"), 0o600))
			gitIn(t, there, "commit", "-q", "-a", "-m", "by an agent")
			noError(t, os.Remove(filepath.Join(there, "draft")))
			broken.answers.Store(2)
			now, err := trees.Fetch(t.Context(), checkout, was, "refs/fairlead/steps/r1/work/1")
			noError(t, err)
			if got, _ := os.ReadFile(filepath.Join(checkout, "a")); string(got) != "two\n" {
				t.Errorf("a is %q", got)
			}
			if _, err := os.Lstat(filepath.Join(checkout, "draft")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("draft is there: %v", err)
			}
			if at := gitIn(t, leader, "rev-parse", "refs/fairlead/steps/r1/work/1") +
				gitIn(t, checkout, "rev-parse", "fairlead/r1"); at != now.Snapshot+now.Head {
				t.Errorf("the refs are %s", at)
			}
			broken.answers.Store(2)
			lateTree(t, trees, now, checkout, there)
			if _, err := trees.Send(t.Context(), "r1", checkout, &now); err != nil { // it has everything: no body
				t.Error(err)
			}
			if left := gitIn(t, host, "for-each-ref", "refs/fairlead/left"); left != "" {
				t.Errorf("the host kept what the leader has: %s", left)
			}
			noError(t, errors.Join(os.RemoveAll(host), os.Mkdir(host, 0o700))) // another disk: it has nothing of what it had
			if _, err := trees.Send(t.Context(), "r1", checkout, &now); err != nil {
				t.Error(err)
			}
			if got, _ := os.ReadFile(filepath.Join(there, "a")); string(got) != "two\n" {
				t.Errorf("a on the new host is %q", got)
			}

			dirs := []string{".agents/runs/r1/artifacts", ".agents/runs/r1/none"}
			noError(t, os.MkdirAll(filepath.Join(leader, dirs[0], "deep"), 0o750))
			noError(t, os.WriteFile(filepath.Join(leader, dirs[0], "deep", "in"), []byte("in"), 0o600))
			broken.requests.Store(1)
			_, err = trees.SendFiles(t.Context(), leader, dirs, nil)
			noError(t, err)
			noError(t, os.WriteFile(filepath.Join(host, dirs[0], "deep", "out"), []byte(strings.Repeat("out", 10_000)), 0o600))
			broken.answers.Store(1)
			noError(t, trees.FetchFiles(t.Context(), leader, dirs, nil))
			if got, _ := os.ReadFile(filepath.Join(leader, dirs[0], "deep", "out")); len(got) != 30_000 {
				t.Errorf("out has %d bytes", len(got))
			}

			broken.requests.Store(1)
			for range 2 {
				noError(t, trees.Remove(t.Context(), now, false))
			}
			for _, gone := range []string{there, filepath.Join(host, ".agents", "runs", "r1")} {
				if _, err := os.Lstat(gone); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is there: %v", gone, err)
				}
			}
			if left := gitIn(t, host, "for-each-ref"); left != "" {
				t.Errorf("refs are left on the host: %s", left)
			}

			if _, err := trees.Fetch(t.Context(), checkout,
				transfer.Sent{Run: "r2", Path: ".agents/worktrees/r2", Head: was.Head, Snapshot: was.Head},
				"refs/fairlead/steps/r2/work/1"); err == nil {
				t.Error("a checkout that is not there arrived")
			} else if p, is := errors.AsType[*wire.Problem](err); !is || p.Code != wire.NotHere {
				t.Error(err)
			}
			if _, err := trees.SendFiles(t.Context(), leader, []string{".git"}, nil); err == nil {
				t.Error(".git was sent")
			}
		})
	}
}

// TestSendNew sends the folder of a run again, when it is not known what the host has. It is asked for that: files with the same time and
// size stay as they are.
func TestSendNew(t *testing.T) {
	t.Parallel()
	leader, host := t.TempDir(), t.TempDir()
	mux := http.NewServeMux()
	(&local.Trees{Root: host, Log: slog.New(slog.DiscardHandler)}).Routes(mux)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	trees := &remote.Trees{
		Root: leader,
		Dial: func(context.Context) (*http.Client, string, error) { return server.Client(), server.URL, nil },
	}
	dirs := []string{".agents/runs/r1"}
	at := time.Date(2026, 11, 26, 12, 0, 0, 5, time.UTC)
	put := func(name, text string) {
		path := filepath.Join(leader, dirs[0], name)
		noError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)))
	}
	for _, name := range []string{"same", "longer", "lost"} {
		put(name, "one")
	}
	first, err := trees.SendNew(t.Context(), leader, dirs, nil)
	noError(t, err)
	noError(t, os.Remove(filepath.Join(host, dirs[0], "lost")))
	put("same", "two") // which only one that is sent would have
	put("longer", "longer")
	put("new", "new")
	now, err := trees.SendNew(t.Context(), leader, dirs, nil)
	noError(t, err)
	for name, want := range map[string]string{"same": "one", "longer": "longer", "lost": "one", "new": "new"} {
		if got, err := os.ReadFile(filepath.Join(host, dirs[0], name)); err != nil || string(got) != want {
			t.Errorf("%s is %q: %v", name, got, err)
		}
		if name := dirs[0] + "/" + name; now[name] == "" || (now[name] == first[name]) != (want == "one") {
			t.Errorf("%s was %q and is %q", name, first[name], now[name])
		}
	}
}

// broken is a connection on which no answer comes to its end. With whole, none begins.
type broken struct {
	whole bool
	asked int
}

func (b *broken) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.asked++; b.whole {
		return nil, errors.New("stream error")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)), Request: r}, nil
}

type healthy struct{}

func (healthy) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// A request that the host breaks off each time ends with an error. One whose connection was lost is sent on the next one, however
// often that happens.
func TestTreesGiveUp(t *testing.T) {
	t.Parallel()
	dirs := []string{".agents/runs/r1/artifacts"}
	for _, whole := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			conn := &broken{whole: whole}
			trees := &remote.Trees{Root: t.TempDir(), Dial: func(context.Context) (*http.Client, string, error) {
				return &http.Client{Transport: conn}, "http://b", nil
			}}
			err := trees.FetchFiles(ctx, trees.Root, dirs, nil)
			if err == nil || conn.asked != 6 ||
				!strings.Contains(err.Error(), "GET /v1/files failed 6 times while the host stayed connected") {
				t.Errorf("after %d tries: %v", conn.asked, err)
			}
			lost := 0
			trees.Dial = func(context.Context) (*http.Client, string, error) {
				if lost++; lost > 50 {
					return &http.Client{Transport: healthy{}}, "http://b", nil
				}
				return &http.Client{Transport: &broken{whole: whole}}, "http://b", nil
			}
			if err := trees.FetchFiles(ctx, trees.Root, dirs, nil); err != nil {
				t.Errorf("after %d lost connections: %v", lost-1, err)
			}
		})
	}
}
