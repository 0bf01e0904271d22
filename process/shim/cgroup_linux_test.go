package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"golang.org/x/sys/unix"
)

// fakeScope is a folder with the files of a cgroup that systemd has delegated. The kernel's own files are in no test, because few machines
// that run tests have the controllers in version 2.
func fakeScope(t *testing.T) (mounted, scope string) {
	t.Helper()
	mounted = t.TempDir()
	scope = filepath.Join(mounted, "user.slice", "run-1.scope")
	ok(t, os.MkdirAll(scope, 0o755))
	ok(t, put(scope, "cgroup.controllers", "cpu memory pids\n"))
	ok(t, put(scope, "cgroup.procs", ""))
	if err := unix.Setxattr(scope, "user.delegate", []byte("1"), 0); err != nil {
		t.Skipf("%s has no extended attributes: %v", scope, err)
	}
	remove := removeGroup
	removeGroup = os.RemoveAll
	t.Cleanup(func() { removeGroup = remove })
	return mounted, scope
}

func contentOf(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	ok(t, err)
	return string(text)
}

// TestEnterScope: a delegated cgroup gets a child for the daemon and passes its controllers on, and what dead sessions of this workspace
// left is removed. A daemon that starts again in that child finds the same cgroup.
func TestEnterScope(t *testing.T) {
	mounted, scope := fakeScope(t)
	const work = "/repo"
	left, other := filepath.Join(scope, groupPrefix+markOf(work, "a-1")), filepath.Join(scope, groupPrefix+markOf("/other", "a-1"))
	ok(t, os.Mkdir(left, 0o755))
	ok(t, os.Mkdir(other, 0o755))
	for _, own := range []string{"", "/" + ownGroup} {
		got, err := enterScope(mounted, "4:memory:/x\n0::/user.slice/run-1.scope"+own+"\n", work)
		ok(t, err)
		if got != scope {
			t.Fatalf("%s, want %s", got, scope)
		}
		if got := contentOf(t, scope, "cgroup.subtree_control"); got != "+memory +pids" {
			t.Fatal(got)
		}
		if _, err := os.Stat(filepath.Join(scope, ownGroup)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("what a dead session left is there")
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("the cgroup of another workspace: %v", err)
	}
}

// TestNoScope: without a delegated cgroup with both controllers nothing is changed, and the error says why.
func TestNoScope(t *testing.T) {
	for name, test := range map[string]struct {
		change func(scope string) error
		own    string
		want   string
	}{
		"not delegated": {func(s string) error { return unix.Removexattr(s, "user.delegate") }, "", "Delegate=yes"},
		"version 1":     {func(s string) error { return put(s, "cgroup.controllers", "cpu\n") }, "", "no controller"},
		"no line":       {func(string) error { return nil }, "4:memory:/user.slice/run-1.scope\n", "cgroup.controllers"},
		"of the machine": {func(s string) error {
			return put(filepath.Dir(filepath.Dir(s)), "cgroup.controllers", "memory pids")
		}, "0::/\n", "Delegate=yes"},
	} {
		t.Run(name, func(t *testing.T) {
			mounted, scope := fakeScope(t)
			ok(t, test.change(scope))
			if test.own == "" {
				test.own = "0::/user.slice/run-1.scope\n"
			}
			got, err := enterScope(mounted, test.own, "/repo")
			if err == nil || got != "" || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%q, %v", got, err)
			}
			if _, err := os.Stat(filepath.Join(scope, ownGroup)); err == nil {
				t.Error("a child was made")
			}
		})
	}
}

// TestLeaveScope: all processes of the scope are moved.
func TestLeaveScope(t *testing.T) {
	_, scope := fakeScope(t)
	ok(t, put(scope, "cgroup.procs", "17\n18\n"))
	ok(t, leaveScope(scope)) // the file stays as it is, so the last process is moved last
	if got := contentOf(t, scope, ownGroup, "cgroup.procs"); got != "18" {
		t.Fatal(got)
	}
}

// TestGroup: the cgroup of a session has its limits, and its events say which one was reached.
func TestGroup(t *testing.T) {
	_, scope := fakeScope(t)
	for _, none := range []struct {
		scope string
		l     spawn.Limits
	}{{"", spawn.Limits{Memory: 1}}, {scope, spawn.Limits{Disk: 1, Output: 1}}} {
		if g, err := makeGroup(none.scope, "h.a-1", none.l); g != nil || err != nil {
			t.Errorf("%+v: %+v %v", none, g, err)
		}
	}
	g, err := makeGroup(scope, "h.a-1", spawn.Limits{Memory: 96 * mib, Processes: 60})
	ok(t, err)
	for file, want := range map[string]string{"memory.max": "100663296", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "76"} {
		if got := contentOf(t, g.dir, file); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
	if g.ended() != "" || g.refuses() {
		t.Error("without events")
	}
	ok(t, put(g.dir, "memory.events", "low 0\nhigh 0\nmax 9\noom 0\noom_kill 3\n"))
	if got := g.ended(); got != "" {
		t.Errorf("the machine had no memory, and it is %s", got)
	}
	ok(t, put(g.dir, "memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 3\n"))
	if got := g.ended(); got != session.LimitMemory {
		t.Error(got)
	}
	ok(t, put(g.dir, "pids.events", "max 4\n"))
	if !g.refuses() || g.refuses() {
		t.Error("each refused fork counts once")
	}
	if !g.holdsTasks(spawn.Limits{Processes: 1}) || g.holdsTasks(spawn.Limits{Memory: 1}) {
		t.Error("whether the kernel holds the limit of processes")
	}
	g.remove()
	if _, err := os.Stat(g.dir); err == nil {
		t.Error("it is there")
	}
	var none *group
	if none.ended() != "" || none.refuses() || none.holdsTasks(spawn.Limits{Processes: 1}) {
		t.Error("a session without a cgroup")
	}
	none.remove()
}

// TestStartInGroup: a process begins in the cgroup, which can be removed when it has ended. The kernel does that without controllers, too.
func TestStartInGroup(t *testing.T) {
	top := ""
	for _, m := range mountsOf("/proc/self") {
		if m.kind == "cgroup2" {
			top = m.at
		}
	}
	g := &group{dir: filepath.Join(top, groupPrefix+"test."+filepath.Base(t.TempDir()))}
	if err := os.Mkdir(g.dir, 0o755); top == "" || err != nil {
		t.Skipf("no cgroup of version 2 can be made: %v", err)
	}
	defer g.remove()
	cmd := exec.Command("cat", "/proc/self/cgroup")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	dir, err := g.attach(cmd.SysProcAttr)
	ok(t, err)
	defer dir.Close()
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("no process can be started there: %v", err)
	}
	if want := "0::/" + filepath.Base(g.dir) + "\n"; !strings.HasSuffix(string(out), want) {
		t.Errorf("%s, want the end %s", out, want)
	}
	g.remove()
	if _, err := os.Stat(g.dir); err == nil {
		t.Error("the cgroup is there")
	}
}

// TestStartWithoutGroup: where the cgroup cannot be used, the session starts all the same, and its shim holds its limits.
func TestStartWithoutGroup(t *testing.T) {
	spec := limited(t, spawn.Limits{Memory: 96 * mib}, "eat", "heap", "167772160")
	spec.Scope = t.TempDir() // of which the kernel knows nothing
	folder := t.TempDir()
	st := done(t, start(t, folder, spec))
	if st.Exit == nil || st.Exit.Limit != session.LimitMemory {
		t.Fatalf("%+v", st)
	}
	if log := contentOf(t, folder, logFile); !strings.Contains(log, "does not start in its cgroup") {
		t.Error(log)
	}
}
