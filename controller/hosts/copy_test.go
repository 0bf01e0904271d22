package hosts

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cluster/local"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/journal/memory"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/host"
	"github.com/fairlead-dev/fairlead/machine/session"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/team"
)

const reports = ".agents/runs/r1/reports/"

// engines are three engine hosts with a checkout of the run r1. a leads now, and c led before. The run's session coder-1 works on one.
type engines struct {
	*HostController
	t    *testing.T
	dirs map[string]string
	down map[string]bool // hosts that answer with an error
	s    team.Session
}

func threeEngines(t *testing.T, works string) *engines {
	t.Helper()
	e := &engines{t: t, dirs: map[string]string{}, down: map[string]bool{}}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	e.ok(err)
	servers := map[string]*httptest.Server{}
	for _, name := range []string{"a", "b", "c"} {
		e.dirs[name] = filepath.Join(dir, name)
		if name == "a" {
			e.ok(os.Mkdir(e.dirs[name], 0o700))
			e.git(name, "init", "-q", "-b", "main")
			e.put(name, ".gitignore", ".agents\n")
			e.git(name, "add", ".")
			e.git(name, "commit", "-q", "-m", "first")
		} else {
			e.git("a", "clone", "-q", ".", e.dirs[name])
		}
		e.git(name, "worktree", "add", "-q", "-b", "r1", e.tree(name, ""))
		mux := http.NewServeMux()
		(&local.Trees{Root: e.dirs[name], Log: slog.New(slog.DiscardHandler)}).Routes(mux)
		servers[name] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if e.down[name] {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			mux.ServeHTTP(w, r)
		}))
		t.Cleanup(servers[name].Close)
	}
	opts := seam.Options{Config: &config.Config{Dir: e.dirs["a"]}, BootID: "boot-a", Log: slog.New(slog.DiscardHandler), Cluster: &seam.Cluster{
		Team: "shop", Name: "a", Stream: true, Folder: filepath.Join(dir, "cluster"), Recheck: func() {}, Connected: func(string) string { return "192.0.2.1:5000" },
		Dial: func(_ context.Context, name string) (*http.Client, string, error) {
			return servers[name].Client(), servers[name].URL, nil
		},
	}}
	l := loop.New(t.Context(), loop.Options{Journal: memory.New(), Log: opts.Log})
	e.ok(l.Replay(t.Context()))
	e.HostController = New(l, opts)
	e.Hooks.Checkout = func(*team.Team, string) (checkout, files string) {
		return e.tree("a", ""), filepath.Join(e.dirs["a"], ".agents/runs/r1")
	}
	l.Register(e.HostHooks())
	e.ok(l.Tell(t.Context(), &team.Event{Actor: byHosts, What: team.DaemonStarted{BootID: opts.BootID}}))
	e.ok(l.Begin(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		l.Shutdown(nil)
	})
	e.s = team.Session{ID: "coder-1", N: 1, For: team.Purpose{Kind: team.PurposeStep, Run: "r1", Step: "work"}, Lease: 1, Phase: session.Running, PID: 1}
	e.ok(e.View(t.Context(), func(now *team.Team) {
		now.Runs = map[string]*workflow.Run{"r1": {Head: workflow.Head{ID: "r1"}}}
		now.Notes = map[string]team.RunNote{"r1": {Settings: team.RunSettings{OwnFolder: true}, Changes: 3, Away: "c"}}
		now.Agents["coder"] = &team.Agent{Session: &e.s}
		now.Hosts.Hosts = map[string]*host.Host{}
		for name := range e.dirs {
			now.Hosts.Hosts[name] = &host.Host{Name: name, State: host.Joined, Incarnation: 1}
		}
		now.Hosts.Leases = map[string]host.Lease{"coder-1": {Token: host.Token{Session: "coder-1", Host: works, Incarnation: 1, N: 1}}}
		e.took()
	}))
	return e
}

func (e *engines) ok(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *engines) git(name string, args ...string) string {
	e.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@b.c"}, args...)...)
	cmd.Dir = e.dirs[name]
	out, err := cmd.CombinedOutput()
	if err != nil {
		e.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// tree is a file of the run's checkout on a host.
func (e *engines) tree(name, file string) string {
	return filepath.Join(e.dirs[name], ".agents/worktrees/r1", file)
}

func (e *engines) put(name, file, content string) {
	e.t.Helper()
	path := filepath.Join(e.dirs[name], file)
	e.ok(errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)))
}

// has checks a file on a.
func (e *engines) has(file, want string) {
	e.t.Helper()
	got, err := os.ReadFile(filepath.Join(e.dirs["a"], file))
	if err != nil && (want != "" || !errors.Is(err, os.ErrNotExist)) || string(got) != want {
		e.t.Errorf("%s on the leader is %q, not %q: %v", file, got, want, err)
	}
}

func (e *engines) away() (name string) {
	e.t.Helper()
	e.ok(e.View(e.t.Context(), func(t *team.Team) { name = t.Notes["r1"].Away }))
	return name
}

// ends lets the session end. The answer is there when its step may end. This returns when that waits, or is over.
func (e *engines) ends() <-chan error {
	e.t.Helper()
	over := make(chan error, 1)
	go func() { over <- e.BringBack(e.t.Context(), e.s) }()
	wait.Until(e.t, "the end of the step waits", func() bool { return len(over) > 0 || e.why() != "" })
	return over
}

// why is what the session waits for.
func (e *engines) why() string {
	for _, w := range e.noted().Waiting {
		if w.Session == e.s.ID {
			return w.Why
		}
	}
	return ""
}

// bring fetches what the leader before has, as it is connected again.
func (e *engines) bring() error {
	var one copied
	e.ok(e.View(e.t.Context(), func(t *team.Team) {
		one = copied{checkout: checkout{run: "r1"}, away: true, why: "its newest files are on c"}
		one.dir, one.files = e.Hooks.Checkout(t, "r1")
	}))
	return (&copying{HostController: e.HostController, host: "c"}).tryBring(e.t.Context(), one)
}

// TestResultAfterNewestFiles has a session that ends on another host before the files of the leader before arrive. They are older than
// what it has made.
func TestResultAfterNewestFiles(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "b")
	work := ".agents/worktrees/r1/work.txt"
	e.put("b", work, "made")
	e.put("b", reports+"r1__work.json", "of the session")
	e.put("c", work, "older")
	e.put("c", reports+"r1__check.json", "of c")
	e.ok(e.fetchNow(t.Context(), "coder-1"))
	e.has(work, "")
	over := e.ends()

	e.down["c"] = true
	if err := e.bring(); err == nil {
		t.Error("files came from a host that answers with an error")
	}
	if why := e.why(); !strings.Contains(why, "The last attempt failed: ") || !strings.Contains(why, "answered 500") {
		t.Errorf("it waits: %q", why)
	}
	e.down["c"] = false
	e.ok(e.bring())
	e.ok(<-over)
	e.ok(e.bring()) // it was in progress before
	e.has(work, "made")
	e.has(reports+"r1__work.json", "of the session")
	e.has(reports+"r1__check.json", "of c")
	if name, why := e.away(), e.why(); name != "" || why != "" {
		t.Errorf("its files are on %q; it waits: %q", name, why)
	}
}

// TestResultWithNewestFiles has a session that ends on the host that led before.
func TestResultWithNewestFiles(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "c")
	e.put("c", ".agents/worktrees/r1/work.txt", "made")
	e.ok(<-e.ends())
	e.has(".agents/worktrees/r1/work.txt", "made")
	if name := e.away(); name != "" {
		t.Errorf("its files are on %q", name)
	}
}

// TestSessionHereIsNewer has a session on the machine that leads now. Its checkout is newer than that of the leader before.
func TestSessionHereIsNewer(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "a")
	work := ".agents/worktrees/r1/work.txt"
	e.put("a", work, "made")
	e.put("a", reports+"r1__work.json", "of the session")
	e.put("c", work, "older")
	e.put("c", reports+"r1__work.json", "older")
	e.put("c", reports+"r1__check.json", "of c")
	over := e.ends()
	e.ok(e.bring())
	e.ok(<-over)
	e.has(work, "made")
	e.has(reports+"r1__work.json", "of the session")
	e.has(reports+"r1__check.json", "of c")
	if got := e.git("a", "show", lateRefs+"r1/leader/c:work.txt"); got != "older" {
		t.Errorf("kept of the leader before: %q", got)
	}
	if got, err := os.ReadFile(filepath.Join(e.is.Folder, lateFolder, "r1", "leader-c", reports, "r1__work.json")); err != nil || string(got) != "older" {
		t.Errorf("kept of the leader before: %q, %v", got, err)
	}
	if name := e.away(); name != "" {
		t.Errorf("its files are on %q", name)
	}
}
