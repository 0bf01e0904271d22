package remote_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/git/transfer"
	"github.com/fairlead-dev/fairlead/hosts/local"
	"github.com/fairlead-dev/fairlead/hosts/remote"
)

// travel is a leader with a run's checkout of 200 files, and a host on loopback.
type travel struct {
	testing.TB
	trees          *remote.Trees
	leader, host   string
	checkout       string
	was            transfer.Sent
	steps          int
	requests, sent atomic.Int64 // sent: bytes of bodies, both ways
}

type counted struct {
	http.ResponseWriter
	bytes *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.bytes.Add(int64(len(b)))
	return c.ResponseWriter.Write(b)
}

func newTravel(t testing.TB) *travel {
	t.Helper()
	r := &travel{TB: t, leader: t.TempDir(), host: t.TempDir()}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", r.leader, "-c", "user.name=A", "-c", "user.email=a@b.c"}, args...)...)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, said)
		}
	}
	git("init", "-q", "-b", "main")
	for i := range 200 {
		if err := os.WriteFile(filepath.Join(r.leader, fmt.Sprintf("f%d", i)), bytes.Repeat([]byte{byte(i), '\n'}, 500),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("add", "-A")
	git("commit", "-q", "-m", "first")
	r.checkout = filepath.Join(r.leader, ".agents", "worktrees", "r1")
	git("branch", "fairlead/r1")
	git("clone", "-q", "--shared", "--branch", "fairlead/r1", ".", r.checkout)
	mux := http.NewServeMux()
	(&local.Trees{Root: r.host, Log: slog.New(slog.DiscardHandler)}).Routes(mux)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.requests.Add(1)
		r.sent.Add(max(0, q.ContentLength))
		mux.ServeHTTP(counted{w, &r.sent}, q)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	r.trees = &remote.Trees{
		Root: r.leader,
		Dial: func(context.Context) (*http.Client, string, error) { return server.Client(), server.URL, nil },
	}
	r.step(nil, func() {})
	return r
}

// step carries the checkout to the host and back, as before and after a session there.
func (r *travel) step(was *transfer.Sent, agent func()) {
	r.Helper()
	var err error
	if r.was, err = r.trees.Send(r.Context(), "r1", r.checkout, was); err != nil {
		r.Fatal(err)
	}
	agent()
	r.steps++
	if r.was, err = r.trees.Fetch(r.Context(), r.checkout, r.was, fmt.Sprintf("refs/fairlead/steps/r1/s%d/1", r.steps)); err != nil {
		r.Fatal(err)
	}
}

func (r *travel) edit() {
	r.Helper()
	name := filepath.Join(r.host, ".agents", "worktrees", "r1", "f7")
	if err := os.WriteFile(name, fmt.Appendf(nil, "step %d\n", r.steps), 0o600); err != nil {
		r.Fatal(err)
	}
}

// Most of what a step on another host takes is git processes.
func TestGitProcessesOfAStep(t *testing.T) {
	r := newTravel(t)
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	if err := os.WriteFile(filepath.Join(dir, "git"),
		fmt.Appendf(nil, "#!/bin/sh\necho \"$PWD $*\" >> '%s'\nexec '%s' \"$@\"\n", log, real),
		0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, name := range []string{"nothing", "a file"} {
		agent := func() {}
		if name == "a file" {
			agent = r.edit
			r.step(&r.was, agent) // from here on the checkout has what no commit has
		}
		if err := os.WriteFile(log, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		before := r.requests.Load()
		r.step(&r.was, agent)
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		git, requests := bytes.Count(text, []byte("\n")), int(r.requests.Load()-before)
		if most := map[string]int{"nothing": 32, "a file": 60}[name]; git > most || requests > 2 {
			t.Errorf("a step that changes %s takes %d git processes and %d requests, want at most %d and 2", name, git, requests, most)
		}
	}
}

// BenchmarkTrees carries a run's checkout to a host and back, and counts bare starts of git beside it.
func BenchmarkTrees(b *testing.B) {
	for _, changes := range []string{"nothing", "a-file"} {
		b.Run("changes="+changes, func(b *testing.B) {
			r := newTravel(b)
			r.step(&r.was, func() {})
			r.sent.Store(0)
			var bare time.Duration
			from := r.steps
			for b.Loop() {
				r.step(&r.was, func() {
					if changes != "nothing" {
						r.edit()
					}
				})
				b.StopTimer()
				began := time.Now()
				if err := exec.Command("git", "-C", r.leader, "rev-parse", "HEAD").Run(); err != nil {
					b.Fatal(err)
				}
				bare += time.Since(began)
				b.StartTimer()
			}
			steps := float64(r.steps - from)
			took := b.Elapsed().Seconds() / steps
			b.ReportMetric(took*1000, "ms/step")
			b.ReportMetric(took*steps/bare.Seconds(), "step/bare-git")
			b.ReportMetric(float64(r.sent.Load())/steps, "bytes/step")
			b.ReportMetric(0, "ns/op")
		})
	}
}
