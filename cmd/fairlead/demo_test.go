package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/demo"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/examples"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/read/view"
)

// The demo combines the examples: each of their agents is in it, with the same settings.
func TestDemoIsItsExamples(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	dir, err := demo.ScratchRepository(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	read := func(dir string) *config.Config {
		t.Helper()
		conf, err := config.Load(dir, os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		return conf
	}
	demo := read(dir)
	agents := map[string]config.Agent{}
	for _, a := range demo.Agents {
		agents[a.Name] = a
	}
	for _, name := range []string{"trio", "review", "crew", "tasks"} {
		copied := filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(copied, os.DirFS(filepath.Join("..", "..", "examples", name))); err != nil {
			t.Fatal(err)
		}
		conf := read(copied)
		for _, want := range conf.Agents {
			got := agents[want.Name]
			delete(agents, want.Name)
			want.Script, want.Workspace = filepath.Join(dir, filepath.Base(want.Script)), filepath.Join(dir, filepath.Base(want.Workspace))
			want.Limits = got.Limits // the team's
			if !reflect.DeepEqual(want, got) {
				t.Errorf("%s of %s is another in the demo: %+v, not %+v", want.Name, name, got, want)
			}
		}
		for _, c := range conf.Channels {
			if !slices.ContainsFunc(demo.Channels, func(d config.Channel) bool { return reflect.DeepEqual(c, d) }) {
				t.Errorf("the channel of %s is another in the demo: %+v, not %+v", name, demo.Channels, c)
			}
		}
		if conf.Team.Lead != "" && (conf.Team.Lead != demo.Team.Lead || conf.Team.Size != demo.Team.Size) {
			t.Errorf("the team of %s is another in the demo: %+v, not %+v", name, demo.Team, conf.Team)
		}
	}
	if len(agents) > 0 {
		t.Errorf("nobody knows these: %v", agents)
	}
	// Where two have a file of one name, one of them is in the demo; so they have to agree.
	for _, name := range []string{"commit.sh"} {
		one, err1 := examples.Files.ReadFile("trio/" + name)
		two, err2 := examples.Files.ReadFile("review/" + name)
		if err1 != nil || err2 != nil || string(one) != string(two) {
			t.Errorf("%s of the two examples differ (%v, %v)", name, err1, err2)
		}
	}
}

// The demo without a page: agents work and talk, Ctrl-C ends it, and nothing is left behind.
func TestDemoHeadless(t *testing.T) {
	if testing.Short() {
		t.Skip("the demo takes a quarter of a minute")
	}
	t.Parallel() // it mostly waits
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	temp := t.TempDir()
	cmd := command("demo", "--headless", "--for", "5m", "--json")
	cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+t.TempDir(), "TMPDIR="+temp)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !wait.Poll(func() bool { return demoSeen(t, temp) }) {
		t.Error("no agent talks, or the crew does not wake")
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &errs)
	}
	var said demo.DemoAnswer
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		t.Fatal(err)
	}
	if said.Said < 4 || said.Turns < 3 || said.Commits < 2 || said.Strays != 0 || len(said.Agents) != 8 ||
		said.Team.Summoned != 8 || said.Team.Sessions != 2 {
		t.Errorf("%s", &out)
	}
	if len(said.Tasks) != 3 || said.Tasks[0].Comments != 1 || said.Tasks[0].Status != view.TaskNeedsYou || said.Tasks[1].Landed == "" ||
		!said.Tasks[2].Conflict || said.Tasks[2].Status != view.TaskNeedsYou {
		t.Errorf("the tasks: %s", &out)
	}
	if cli.Exists(said.Dir) {
		t.Errorf("%s is still there", said.Dir)
	}
}

// demoSeen says whether there was enough to see: some talk in the channel, a team that has been summoned, has slept,
// and is awake again, and two tasks that came back and wait.
func demoSeen(t *testing.T, temp string) bool {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(temp, "fairlead-demo-*")) // the pattern is ours
	if len(found) == 0 {
		return false
	}
	client, err := apiclient.Dial(found[0])
	if err != nil {
		return false
	}
	defer client.Close()
	channel, err := client.Channels.Show(t.Context(), demo.DemoChannel)
	if err != nil || channel.Messages < 4 {
		return false
	}
	for _, id := range []string{"T1", "T3"} {
		r, err := client.Runs.Show(t.Context(), id)
		if err != nil || r.Task.Status != view.TaskNeedsYou ||
			!slices.ContainsFunc(r.Steps, func(s view.StepView) bool { return s.ID == "work" && s.Iteration == 1 }) {
			return false
		}
	}
	crew, err := client.Crew.Show(t.Context(), false)
	return err == nil && crew.Button == "none" && crew.Lead.Session == "julian-2"
}

// A team of three machines: the one that works loses its power, and its task goes on on another one. Here the machine is
// switched on again at once, with the id of a new start, so that its session has ended for certain and nothing waits for a
// deadline; it is to leave, so that it gets no session. FAIRLEAD_LONG=ci lets the deadlines pass.
func TestDemoHosts(t *testing.T) {
	t.Parallel() // it mostly waits
	var out bytes.Buffer
	want := []string{"b", "b", "c"}
	if testsize.CI() {
		cmd := command("demo", "--hosts", "3", "--headless", "--json")
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
	} else {
		boot := filepath.Join(t.TempDir(), "boot")
		if err := os.WriteFile(boot, []byte("5d3c9c0e-0f2b-4a43-9a55-0d4a5f1c7e10\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		started := func(words ...string) *exec.Cmd {
			return exec.Command("unshare",
				append([]string{"-Urm", "sh", "-c", `mount --bind "$0" ` + bootID + ` && exec "$@"`, boot}, words...)...)
		}
		if why, err := started("true").CombinedOutput(); err != nil {
			t.Skipf("this machine lets us mount nothing: %v %s", err, why)
		}
		app := &cli.App{Out: &out, Err: io.Discard, JSON: true}
		if err := demo.Hosts(t.Context(), app, demo.HostsOptions{
			DemoOptions: demo.DemoOptions{Headless: true, Listen: "127.0.0.1:0"}, Number: 3, Program: program,
			Again: func(dir string) *exec.Cmd {
				client, err := apiclient.Dial(filepath.Join(filepath.Dir(dir), "leader"))
				if err != nil {
					t.Error(err)
				} else if _, err := client.DrainHost(t.Context(), filepath.Base(dir)); err != nil {
					t.Error(err)
				}
				return started(program, "up", "--dir", dir)
			},
		}); err != nil {
			t.Fatal(err)
		}
	}
	var said demo.HostsAnswer
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(said.Ran, want) || said.Cut != "b" || said.Missing < 1 || said.Landed == "" || said.Strays != 0 ||
		len(said.Letter) != 9 ||
		said.Letter[2] != "line 3, written on b" || said.Letter[3] != "line 4, written on c" || said.Letter[8] != "line 9, written on c" {
		t.Errorf("%s", &out)
	}
	if cli.Exists(said.Dir) {
		t.Errorf("%s is still there", said.Dir)
	}
}

// Ctrl-C ends the demo of several machines while one of them works: all daemons, shims and agents, and the folders.
func TestDemoHostsStopped(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	cmd := command("demo", "--hosts", "2", "--headless")
	cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+t.TempDir(), "TMPDIR="+temp)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var dir string
	if !wait.Poll(func() bool {
		// the pattern is ours
		found, _ := filepath.Glob(filepath.Join(temp, "fairlead-demo-*", "b", ".agents", "worktrees", "T1", "letter.txt"))
		if len(found) > 0 {
			dir = strings.TrimSuffix(found[0], "/.agents/worktrees/T1/letter.txt")
		}
		return len(found) > 0
	}) {
		t.Error("no agent works on the host")
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != cli.ExitCancelled {
		t.Errorf("%v: %s%s", err, &out, &errs)
	}
	if left, err := shim.Strays(dir); err != nil || len(left) > 0 || cli.Exists(filepath.Dir(dir)) {
		t.Error(left, err, "or the folders are still there")
	}
	if said, err := exec.Command("pgrep", "-f", "--", filepath.Dir(dir)).Output(); err == nil {
		t.Errorf("these processes are left: %s", said)
	}
}

// The flags of the demo that do not go together.
func TestDemoHostsRefuses(t *testing.T) {
	for _, c := range []struct {
		opts demo.HostsOptions
		want string
	}{
		{demo.HostsOptions{Number: 1}, "from 2 to 5 machines"},
		{demo.HostsOptions{Number: 6}, "from 2 to 5 machines"},
		{demo.HostsOptions{Number: 3, DemoOptions: demo.DemoOptions{Length: 1}}, "leave out --for"},
	} {
		if err := demo.Hosts(t.Context(), &cli.App{}, c.opts); cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), c.want) {
			t.Error(err)
		}
	}
}
