package app

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/process/driver"
	driverexec "github.com/fairlead-dev/fairlead/process/driver/exec"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// TestStepForOtherHost prepares a step of a run for another host. The launch has no value of this machine's environment,
// also none of --env, and this machine's programs are not looked for.
func TestStepForOtherHost(t *testing.T) {
	const canary = "a value of the leader"
	for _, name := range []string{"LEADER_SECRET", "ANTHROPIC_API_KEY", "LC_TELEPHONE"} {
		t.Setenv(name, canary)
	}
	w := newWorld(t,
		"version: 1\nagents:\n  ada: {driver: claude, command: [no-such-program], sandbox: \"off\", workspace: ada, env: {KEY: \"${LEADER_SECRET}\", PLAIN: as written}}\n", map[string]string{
			".agents/prompts/work.md": "do the work", "flow.yaml": "name: far\nsteps:\n  - {id: one, agent: ada, prompt: work.md}\n",
		})
	w.stop()
	prepared := make(chan spawn.Launch, 1)
	w.host = func(h sessionhost.Host) sessionhost.Host { return capturingHost{h, prepared} }
	w.opened = func() {
		if err := w.engine.Loop.Notify(loop.Request{Derive: loop.Report(
			*loop.EventBy(human, "", host.Join{Name: "b", Boot: "boot", Capacity: 1, Invited: true}),
			*loop.EventBy(human, "ada", team.PlaceAsked{Session: "ada-1"}),
		)}); err != nil {
			t.Error(err)
		}
	}
	w.start()
	<-w.engine.Loop.Ready()
	y := &runWorld{App: w.engine, t: t, dir: w.dir}
	y.start(view.RunFlags{Workflow: "flow.yaml", RunID: "r", Env: []string{"GIVEN=" + canary}})
	launch := <-prepared
	if shown := fmt.Sprintf("%q %s %q %s", launch.Argv, launch.Dir, launch.Env, launch.Input); strings.Contains(shown, canary) {
		t.Errorf("a value of this machine is in %s", shown)
	}
	for _, want := range []string{
		"KEY=" + driver.Variable("LEADER_SECRET"), "GIVEN=" + driver.Variable("GIVEN"), "PLAIN=as written",
		"RUN_ID=r", "REPO_DIR=" + w.dir,
	} {
		if !slices.Contains(launch.Env, want) {
			t.Errorf("%q is missing in %q", want, launch.Env)
		}
	}
	y.until("r", "it fails", over)
}

// capturingHost starts nothing.
type capturingHost struct {
	sessionhost.Host
	launches chan<- spawn.Launch
}

func (h capturingHost) Start(_ context.Context, _ string, _ uint64, launch spawn.Launch, _ time.Duration) (sessionhost.Process, error) {
	select {
	case h.launches <- launch:
	default: // a later attempt
	}
	return nil, &spawn.CannotStart{Why: "this test starts nothing"}
}

// TestToolsForOtherHost checks that a session on another host is offered the command for the team's tools, and no
// address of this machine.
func TestToolsForOtherHost(t *testing.T) {
	t.Parallel()
	offer := driver.MCP{URL: "http://127.0.0.1:7466/mcp", Token: "t", Stdio: []string{"/bin/fairlead", "mcp"}}
	c := sessions.New(nil,
		outside.Options{
			Cluster: &outside.Cluster{Name: "a"}, Config: &config.Config{},
			Offer: func(string, string) driver.MCP { return offer },
		})
	m := sessions.NewSlot(&config.Agent{Name: "coder", Command: []string{"sh"}, MCP: true, Workspace: t.TempDir()}, driverexec.Driver{})
	for otherHost, want := range map[string]string{"": "FAIRLEAD_MCP_URL=" + offer.URL, "b": ""} {
		agent, err := c.AgentFor(m, otherHost)
		if err != nil {
			t.Fatal(err)
		}
		ready, err := c.Launch(t.Context(), m, team.Session{}, agent, driver.Session{ID: "coder-1", Kind: driver.Work})
		if err != nil {
			t.Fatal(err)
		}
		env := strings.Join(ready.Launch.Env, "\n")
		if strings.Contains(env, "127.0.0.1") != (want != "") || !strings.Contains(env, want) ||
			!strings.Contains(env, `FAIRLEAD_MCP_STDIO=["/bin/fairlead","mcp"]`) || !strings.Contains(env, "FAIRLEAD_MCP_TOKEN=t") {
			t.Errorf("on host %q: %q", otherHost, ready.Launch.Env)
		}
	}
	placed := &team.Team{Hosts: host.Hosts{Leases: map[string]host.Lease{
		"here-1":  {Token: host.Token{Host: "a"}},
		"there-1": {Token: host.Token{Host: "b"}},
	}}}
	for session, want := range map[string]string{"here-1": "", "there-1": "b", "unplaced-1": ""} {
		if got := c.OtherHost(placed, session); got != want {
			t.Errorf("%s is on %q, want %q", session, got, want)
		}
	}
}

// TestConfineWithoutController runs a command in the sandbox that a host makes from data alone: in a checkout of its
// own repository, where it commits.
func TestConfineWithoutController(t *testing.T) {
	inASandbox(t)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree, own := filepath.Join(root, ".agents", "worktrees", "r1"), filepath.Join(root, ".fairlead", "tmp", "coder-1")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", root, "-c", "user.name=ann", "-c", "user.email=ann@localhost"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "one")
	git("worktree", "add", "-q", "--detach", tree)
	reports := filepath.Join(root, ".agents", "runs", "r1")
	if err := os.MkdirAll(reports, 0o755); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := `echo x > src/in; echo x > out; echo x > ` + reports + `/report; echo x > ` + root +
		`/far; echo x > "$TMPDIR/t" && cp "$TMPDIR/t" src/temp
git -c user.name=ann -c user.email=ann@localhost commit -q --allow-empty -m two; git log --format=%s > src/log`
	launch := spawn.Launch{
		Argv: []string{"sh", "-c", script}, Dir: tree,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")},
	}
	box := sessionhost.Confinement{
		Agent: "coder", Driver: "exec", Mode: config.SandboxWorkspace, CanWrite: []string{"src/**"},
		Writes: []string{reports},
	}
	var proof sessions.SandboxProof
	run := func(box sessionhost.Confinement) []byte {
		t.Helper()
		got, err := proof.Confine(t.Context(), launch, box, root, exe, own)
		if err != nil {
			t.Fatal(err)
		}
		points, err := sandbox.MakePoints(root, *got.View)
		if err != nil {
			t.Fatal(err)
		}
		defer points.Remove()
		argv, err := sandbox.WrapView(exe, got.Argv, *got.View)
		if err != nil {
			t.Fatal(err)
		}
		cmd := &exec.Cmd{Path: argv[0], Args: argv, Dir: got.Dir, Env: got.Env, SysProcAttr: got.View.Attr()}
		said, _ := cmd.CombinedOutput() // what was refused is looked for below
		if err := places.End(own); err != nil {
			t.Error(err)
		}
		return said
	}
	said := run(box)
	for at, want := range map[string]bool{
		tree + "/src/in": true, tree + "/src/temp": true, reports + "/report": true, tree + "/out": false,
		root + "/far": false,
	} {
		if _, err := os.Stat(at); (err == nil) != want {
			t.Errorf("%s is written: %t\n%s", at, !want, said)
		}
	}
	if log, err := os.ReadFile(filepath.Join(tree, "src/log")); err != nil || string(log) != "one\n" {
		t.Errorf("the log of the worktree is %q, %v", log, err)
	}
	if _, err := os.Stat(own); err == nil {
		t.Error("the session's own folder is left")
	}

	if err := os.RemoveAll(filepath.Join(tree, "src")); err != nil {
		t.Fatal(err)
	}
	box.ReadOnly, box.CanWrite = true, nil
	said = run(box)
	if _, err := os.Stat(filepath.Join(tree, "src")); err == nil {
		t.Errorf("a reader has written: %s", said)
	}

	none := sessions.SandboxProof{Why: "there is no sandbox here: old kernel"}
	none.Once.Do(func() {})
	if _, err := none.Confine(t.Context(), launch, box, root, exe, own); err == nil || !strings.Contains(err.Error(), "old kernel") {
		t.Errorf("without a sandbox: %v", err)
	}
	box.Mode = config.SandboxAuto
	if free, err := none.Confine(t.Context(), launch, box, root, exe, own); err != nil || !slices.Equal(free.Argv, launch.Argv) {
		t.Errorf("without a sandbox, auto: %q, %v", free.Argv, err)
	}
	box.Write = []string{filepath.Join(root, "nowhere")}
	if _, err := proof.Confine(t.Context(), launch, box, root, exe, own); err == nil ||
		!strings.Contains(err.Error(), "nowhere, which does not exist") {
		t.Errorf("a missing folder: %v", err)
	}
}
