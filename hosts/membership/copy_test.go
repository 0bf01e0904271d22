package membership

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

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/git/transfer"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/hosts/local"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/runs"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

const (
	reports = ".agents/runs/r1/reports/"
	answers = ".agents/runs/r1/manual_inputs/"
)

// engines are three engine hosts with a checkout of the run r1. a leads now, and c led before. The run's session coder-1 works on one.
type engines struct {
	*Controller
	t    *testing.T
	dirs map[string]string
	down map[string]bool // hosts that answer with an error
	cut  chan struct{}   // if it is there, c does not answer, and a request of it sends here
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
			e.put(name, config.FileName, "version: 1\n")
			e.git(name, "add", ".")
			e.git(name, "commit", "-q", "-m", "first")
		} else {
			e.git("a", "clone", "-q", ".", e.dirs[name])
		}
		e.git(name, "branch", "r1")
		e.git(name, "clone", "-q", "--shared", "--branch", "r1", ".", e.tree(name, ""))
		mux := http.NewServeMux()
		(&local.Trees{Root: e.dirs[name], Log: slog.New(slog.DiscardHandler)}).Routes(mux)
		servers[name] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if name == "c" && e.cut != nil {
				e.cut <- struct{}{}
				<-r.Context().Done()
				return
			}
			if e.down[name] {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			mux.ServeHTTP(w, r)
		}))
		t.Cleanup(servers[name].Close)
	}
	opts := outside.Options{
		Config: &config.Config{Dir: e.dirs["a"]}, BootID: "boot-a", Log: slog.New(slog.DiscardHandler),
		Cluster: &outside.Cluster{
			Team: "shop", Name: "a", Stream: true, Folder: filepath.Join(dir, "cluster"), Recheck: func() {},
			Connected: func(name string) string {
				if name == "c" && e.cut != nil {
					return ""
				}
				return "192.0.2.1:5000"
			},
			Dial: func(_ context.Context, name string) (*http.Client, string, error) {
				return servers[name].Client(), servers[name].URL, nil
			},
		},
	}
	l := loop.New(t.Context(), loop.Options{Journal: memory.New(), Log: opts.Log})
	e.ok(l.Replay(t.Context()))
	e.Controller = New(l, opts)
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
	e.s = team.Session{
		ID: "coder-1", N: 1, For: team.Purpose{Kind: team.PurposeStep, Run: "r1", Step: "work"}, Lease: 1,
		Phase: session.Running, PID: 1,
	}
	e.ok(e.loop.View(t.Context(), func(now *team.Team) {
		now.Runs = map[string]*workflow.Run{"r1": {Head: workflow.Head{ID: "r1", ReportsDir: filepath.Join(e.dirs["a"], reports)}}}
		now.Notes = map[string]team.RunMeta{"r1": {Settings: team.RunSettings{OwnFolder: true}, Changes: 3, Away: "c"}}
		worksIn(now, "r1", e.tree("a", ""))
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

// worksIn gives a run a checkout; empty: none.
func worksIn(t *team.Team, run, dir string) {
	note := t.Notes[run]
	note.Settings.How = string(encode.JSON(map[string]string{"worktree": dir}))
	t.Notes[run] = note
}

// notes replaces what is noted of a run, but not its checkout.
func notes(t *team.Team, run string, note team.RunMeta) {
	note.Settings.How = t.Notes[run].Settings.How
	t.Notes[run] = note
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
	e.hasOn("a", file, want)
}

func (e *engines) hasOn(name, file, want string) {
	e.t.Helper()
	got, err := os.ReadFile(filepath.Join(e.dirs[name], file))
	if err != nil && (want != "" || !errors.Is(err, os.ErrNotExist)) || string(got) != want {
		e.t.Errorf("%s on %s is %q, not %q: %v", file, name, got, want, err)
	}
}

// change changes the state of the team.
func (e *engines) change(do func(t *team.Team)) {
	e.t.Helper()
	e.ok(e.loop.View(e.t.Context(), do))
}

// isHere says that the newest files of the run are on a, after a number of changes.
func (e *engines) isHere(changes uint64) {
	e.t.Helper()
	e.change(func(t *team.Team) { notes(t, "r1", team.RunMeta{Changes: changes}) })
}

// toB keeps the copies on b, when the test says so.
func (e *engines) toB() *copying { return e.to("b") }

func (e *engines) to(name string) *copying {
	e.t.Helper()
	is := e.Controller.newCopying(name)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.copying = map[string]*copying{name: is}
	return is
}

// arrivedAtB checks how new the copy on b is.
func (e *engines) arrivedAtB(want uint64) {
	e.t.Helper()
	mark, err := transfer.Arrived(e.t.Context(), worktree.Git{Dir: e.dirs["b"]}, "r1")
	if err != nil || mark.N != want {
		e.t.Errorf("%d changes have arrived, not %d: %v", mark.N, want, err)
	}
}

func (e *engines) away() (name string) {
	e.t.Helper()
	e.ok(e.loop.View(e.t.Context(), func(t *team.Team) { name = t.Notes["r1"].Away }))
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

// bring fetches what the previous leader has, as it is connected again.
func (e *engines) bring() error {
	var one copied
	e.ok(e.loop.View(e.t.Context(), func(t *team.Team) {
		one = copied{checkout: checkout{run: "r1"}, away: true, why: "its newest files are on c"}
		one.dir, one.files = runs.Checkout(t, "r1")
	}))
	return (&copying{Controller: e.Controller, host: "c"}).tryBring(e.t.Context(), one)
}

// TestResultAfterNewestFiles has a session that ends on another host before the files of the previous leader arrive. They are older than
// what it has made.
func TestResultAfterNewestFiles(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "b")
	work := ".agents/worktrees/r1/work.txt"
	e.put("b", work, "made")
	e.put("b", reports+"r1__work.json", "of the session")
	e.put("c", work, "older")
	e.put("c", reports+"r1__check.json", "of c")
	e.put("c", answers+"r1__check.json", "to c")
	e.put("c", answers+"r1__work.json", "older")
	e.put("a", answers+"r1__work.json", "newer")
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
	e.has(answers+"r1__check.json", "to c")
	e.has(answers+"r1__work.json", "newer")
	if name, why := e.away(), e.why(); name != "" || why != "" {
		t.Errorf("its files are on %q; it waits: %q", name, why)
	}
}

// TestWaitsForFiles has a step that begins when its files have arrived. From then on it does not wait.
func TestWaitsForFiles(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "a")
	slot := &sessions.Slot{Conf: &config.Agent{Name: "coder"}}
	fits, err := e.Controller.filesAway(t.Context(), slot, e.s, "r1", "work")
	if err == nil || e.why() == "" {
		t.Fatalf("it begins without its files: %v", err)
	}
	e.isHere(3)
	e.change(func(now *team.Team) {
		if !fits(now) {
			t.Error("its files have arrived, and it is not tried again")
		}
	})
	if _, err := e.Controller.filesAway(t.Context(), slot, e.s, "r1", "work"); err != nil || e.why() != "" {
		t.Errorf("it waits: %v, %q", err, e.why())
	}
}

// TestGivenUpWhileFilesArrive has a host that is cut off while it sends the files of a run. A person does not wait, and the run goes on.
func TestGivenUpWhileFilesArrive(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "b")
	e.cut = make(chan struct{})
	over := make(chan error, 1)
	go func() { over <- e.bring() }()
	<-e.cut
	e.ok(e.Controller.arrived(t.Context(), "r1")) // as if a person had said so
	_, err := e.Controller.filesAway(t.Context(), &sessions.Slot{Conf: &config.Agent{Name: "coder"}}, e.s, "r1", "work")
	e.ok(err)
	e.ok(<-over)

	// The same when it is back for a moment, and what it has is to be kept.
	e.ok(e.copies.newer("r1", "c"))
	go func() {
		over <- e.to("c").keepNewer(t.Context(), copied{checkout: checkout{run: "r1", dir: e.tree("a", "")}})
	}()
	select {
	case <-e.cut:
		err = <-over
	case err = <-over:
	}
	if !errors.Is(err, errAway) {
		t.Error(err)
	}
}

// TestResultWithNewestFiles has a session that ends on the previous leader.
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

// TestSessionHereIsNewer has a session on the machine that leads now. Its checkout is newer than that of the previous leader.
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
		t.Errorf("kept of the previous leader: %q", got)
	}
	if got, err := os.ReadFile(filepath.Join(e.is.Folder, lateFolder, "r1", "leader-c", reports, "r1__work.json")); err != nil ||
		string(got) != "older" {
		t.Errorf("kept of the previous leader: %q, %v", got, err)
	}
	if name := e.away(); name != "" {
		t.Errorf("its files are on %q", name)
	}
}

// TestCancelledRunIsBrought has a run whose checkout is gone on the previous leader, because the run was cancelled there.
func TestCancelledRunIsBrought(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "b")
	e.put("c", reports+"r1__check.json", "of c")
	e.ok(os.RemoveAll(e.tree("c", "")))
	if err := e.bring(); err == nil {
		t.Error("a run goes on without its checkout")
	}
	e.change(func(t *team.Team) { t.Runs["r1"].Stage = workflow.Stopped })
	e.ok(e.bring())
	e.has(reports+"r1__check.json", "of c")
	if name := e.away(); name != "" {
		t.Errorf("its files are on %q", name)
	}
}

// TestNothingOutsideOfRuns has links in the place of folders. Files that another host sends are not written behind them.
func TestNothingOutsideOfRuns(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "b")
	out := t.TempDir()
	e.put("a", ".agents/runs/r1/artifacts/x", "")
	e.ok(os.Symlink(out, filepath.Join(e.dirs["a"], ".agents/runs/r1/artifacts/link")))
	e.put("c", ".agents/runs/r1/artifacts/link/file", "of c")
	e.ok(e.bring())
	if found, err := os.ReadDir(out); err != nil || len(found) > 0 {
		t.Errorf("outside: %v, %v", found, err)
	}
	if got, err := os.ReadFile(filepath.Join(e.is.Folder, lateFolder, "r1/leader-c/.agents/runs/r1/artifacts/link/file")); err != nil ||
		string(got) != "of c" {
		t.Errorf("kept: %q, %v", got, err)
	}
}

// TestCopyIsWhole removes what b has of a run. The next copy has all of it again.
func TestCopyIsWhole(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "a")
	e.isHere(3)
	to := e.toB()
	e.put("a", reports+"r1__check.json", "of a")
	lose := func() { e.ok(os.RemoveAll(filepath.Join(e.dirs["b"], ".agents/runs"))) }
	for n, loses := range []func(){
		func() {},
		func() { e.ok(e.copies.set("r1", tree{})); lose() },
		func() { e.change(func(t *team.Team) { t.Hosts.Hosts["b"].Incarnation++ }); lose() },
	} {
		loses()
		e.isHere(uint64(3 + n))
		e.ok(to.pass(t.Context(), false))
		e.hasOn("b", reports+"r1__check.json", "of a")
		e.arrivedAtB(uint64(3 + n))
	}
}

// TestCopyBesideSession has a session that is about to start on b, and then works there: the files there are the newer ones, but for
// the answers of people.
func TestCopyBesideSession(t *testing.T) {
	t.Parallel()
	t.Run("of an agent", func(t *testing.T) { copiesBesideSession(t, false) })
	t.Run("of a command", func(t *testing.T) { copiesBesideSession(t, true) })
}

func copiesBesideSession(t *testing.T, command bool) {
	t.Parallel()
	e := threeEngines(t, "b")
	e.isHere(3)
	e.change(func(now *team.Team) {
		if command {
			delete(now.Agents, "coder")
			now.Pool.Sessions = map[string]*team.Session{"r1/work": &e.s}
		}
		for _, name := range []string{"one", "two", "three"} { // others work on a
			s := team.Session{
				ID: name + "-1", For: team.Purpose{Kind: team.PurposeStep, Run: "r1", Step: name}, Phase: session.Running,
				PID: 1,
			}
			now.Agents[name] = &team.Agent{Session: &s}
			now.Hosts.Leases[s.ID] = host.Lease{Token: host.Token{Session: s.ID, Host: "a", Incarnation: 1, N: 1}, Home: true}
		}
		if openSession(now, "coder-1") != &e.s {
			t.Error("the session is not open")
		}
	})
	e.s.PID = 0
	to := e.toB()
	e.ok(to.pass(t.Context(), false))
	e.arrivedAtB(0)
	if to.behind != 1 {
		t.Errorf("%d runs are not there", to.behind)
	}
	e.Controller.wakeCopies([]change.Change{{Body: &e.s}})
	if len(to.wake) != 1 {
		t.Error("the start of the session does not wake it")
	}
	<-to.wake
	e.change(func(*team.Team) { e.s.PID = 1 })
	e.put("a", answers+"r1__work.json", "an answer")
	e.put("a", reports+"r1__work.json", "older")
	e.put("b", reports+"r1__work.json", "of the session")
	e.ok(to.pass(t.Context(), false))
	e.arrivedAtB(3)
	e.hasOn("b", answers+"r1__work.json", "an answer")
	e.hasOn("b", reports+"r1__work.json", "of the session")
	if e.Controller.wakeCopies([]change.Change{{Body: &e.s}}); to.behind != 0 || len(to.wake) != 0 {
		t.Errorf("%d runs are not there; it is woken: %t", to.behind, len(to.wake) != 0)
	}
	if e.Controller.wakeCopies([]change.Change{{Body: &team.NoteSet{}}}); len(to.wake) != 1 {
		t.Error("files that have arrived do not wake it")
	}
}

// TestCopyThatFails has one run whose checkout cannot be read, and one that can.
func TestCopyThatFails(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "a")
	e.isHere(3)
	e.put("a", "file", "no checkout")
	e.change(func(t *team.Team) {
		t.Runs["r0"] = &workflow.Run{Head: workflow.Head{ID: "r0", ReportsDir: filepath.Join(e.dirs["a"], ".agents/runs/r0/reports")}}
		worksIn(t, "r0", filepath.Join(e.dirs["a"], "file"))
	})
	to := e.toB()
	if err := to.pass(t.Context(), false); err == nil || !strings.Contains(err.Error(), "run r0") {
		t.Errorf("it is sent: %v", err)
	}
	e.arrivedAtB(3)
	if to.behind != 1 {
		t.Errorf("%d runs are not there", to.behind)
	}
}
