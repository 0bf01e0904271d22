package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/internal/boundedlog"
	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

// callerVar makes a process of this test binary a caller of the proxy of a folder.
const callerVar = "FAIRLEAD_TEST_CALLER"

// registerVar makes it register a session.
const registerVar = "FAIRLEAD_TEST_REGISTER"

func callAs(folder string) int {
	name, role := os.Getenv(registerVar), wire.RoleWatcher
	if name != "" {
		role = wire.RoleSession
	}
	c, err := wire.Connect(context.Background(), folder, role, wire.Options{})
	if err == nil && name != "" {
		var m wire.Message
		err = c.Send(wire.Message{Register: &wire.Register{Session: name}})
		if err == nil {
			m, _, err = c.Receive()
		}
		if err == nil && m.Refused != nil {
			err = m.Refused
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer c.Close()
	fmt.Println("served")
	return 0
}

// place is a folder for a proxy's process, which ends with the test.
func place(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "proxy") //nolint:usetesting // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(runtimedir.Var, dir)
	folder := filepath.Join(dir, "state", "proxy")
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(folder, "log"))
			t.Logf("log of the proxy:\n%s", log)
		}
		os.RemoveAll(dir)
	})
	return folder
}

// connect connects to the proxy of a folder; the proxy ends with the test.
func connect(t *testing.T, folder string) *wire.Conn {
	t.Helper()
	c, err := wire.Connect(t.Context(), folder, wire.RoleWatcher, wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		_ = syscall.Kill(c.PID, syscall.SIGKILL)
		wait.Until(t, "the end of the proxy", func() bool { return free(folder) })
	})
	return c
}

// free reports whether no process has the lock of a folder.
func free(folder string) bool {
	f, err := os.Open(filepath.Join(folder, "lock"))
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// Of many callers at once, all reach the same proxy. It is no child of theirs.
func TestOneProxy(t *testing.T) {
	folder := place(t)
	first := connect(t, folder)
	var all sync.WaitGroup
	var mu sync.Mutex
	var pids []int
	call := func() {
		c, err := wire.Connect(t.Context(), folder, wire.RoleWatcher, wire.Options{})
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		mu.Lock()
		defer mu.Unlock()
		pids = append(pids, c.PID)
	}
	for range 6 {
		all.Go(call)
	}
	all.Wait()
	if len(pids) != 6 || pids[0] != first.PID || len(slices.Compact(slices.Clone(pids))) != 1 {
		t.Fatalf("the proxies are %v and %d", pids, first.PID)
	}
	if parent, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", first.PID)); err == nil {
		if fields := strings.Fields(string(parent[strings.LastIndexByte(string(parent), ')'):])); fields[2] == fmt.Sprint(os.Getpid()) {
			t.Error("the proxy is a child of its first caller")
		}
	}

	// After its end, of many callers at once one starts the next proxy.
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, _, err := first.Receive(); err == nil {
		t.Error("a killed proxy answers")
	}
	pids = nil
	for range 6 {
		all.Go(call)
	}
	all.Wait()
	next := connect(t, folder)
	if len(pids) != 6 || pids[0] != next.PID || len(slices.Compact(slices.Clone(pids))) != 1 || next.PID == first.PID {
		t.Fatalf("the proxies are %v and %d after %d", pids, next.PID, first.PID)
	}

	// When the folder of its socket vanishes, as with a logout, it makes another one.
	if err := os.RemoveAll(filepath.Join(os.Getenv(runtimedir.Var), "fairlead")); err != nil {
		t.Fatal(err)
	}
	call()
	if last := pids[len(pids)-1]; last != next.PID {
		t.Errorf("after its socket vanished the proxy is %d, not %d", last, next.PID)
	}

	// SIGTERM ends it at once, and its socket is gone.
	if err := syscall.Kill(next.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, _, err := next.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("after SIGTERM: %v", err)
	}
	wait.Until(t, "the end after SIGTERM", func() bool { return free(folder) })
	if left, _ := filepath.Glob(filepath.Join(os.Getenv(runtimedir.Var), "fairlead", "*")); len(left) != 0 {
		t.Errorf("it leaves %v", left)
	}
}

// A proxy that is started without the lock of its folder does not run.
func TestNoLock(t *testing.T) {
	folder := place(t)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	other, err := os.Create(filepath.Join(folder, "other"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, files := range [][]*os.File{nil, {other}} {
		cmd := exec.Command("/proc/self/exe", wire.Word, folder)
		if cmd.Path, err = os.Executable(); err != nil {
			t.Fatal(err)
		}
		cmd.ExtraFiles = files
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "not by hand") {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// Processes of a session get nothing from the proxy; the shim of a session does.
func TestCallersInSessions(t *testing.T) {
	folder := place(t)
	connect(t, folder)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		env   []string
		shell bool // the caller is a child of the process with the variables
		held  bool // the caller has a network of its own
		want  string
	}{
		{name: "the daemon", want: "served"},
		{name: "a shim", env: []string{"FAIRLEAD_SHIM=0123.coder-1"}, want: "served"},
		{name: "an agent", env: []string{"FAIRLEAD_MARK=0123.coder-1"}, want: "runs in session coder-1"},
		{name: "a child of an agent", env: []string{"FAIRLEAD_MARK=0123.coder-1"}, shell: true, want: "runs in session coder-1"},
		{name: "a child of a shim", env: []string{"FAIRLEAD_SHIM=0123.coder-1"}, shell: true, want: "runs in session coder-1"},
		{name: "an agent as a shim", env: []string{"FAIRLEAD_MARK=0123.coder-1", "FAIRLEAD_SHIM=0123.coder-1"}, want: "runs in session coder-1"},
		{name: "a step for its commands", env: []string{"FAIRLEAD_MARK=0123.coder-1", registerVar + "=coder-1"}, want: "served"},
		{name: "an agent for itself", env: []string{"FAIRLEAD_MARK=0123.coder-1", registerVar + "=coder-1"}, held: true, want: "runs in session coder-1"},
		{name: "a shim", env: []string{"FAIRLEAD_SHIM=0123.coder-1", registerVar + "=coder-1"}, held: true, want: "served"},
		{name: "a step as another session", env: []string{"FAIRLEAD_MARK=0123.coder-1", registerVar + "=coder-2"}, want: "runs in session coder-1"},
	} {
		cmd := exec.Command(exe)
		if tc.shell {
			cmd = exec.Command("sh", "-c", "env -u FAIRLEAD_MARK FAIRLEAD_SHIM=0123.coder-1 \"$0\"; exit $?", exe)
		}
		if tc.held {
			cmd = exec.Command("unshare", "-n", exe)
			if err := exec.Command("unshare", "-n", "true").Run(); err != nil {
				t.Log("there is no network namespace here: ", err)
				continue
			}
		}
		cmd.Env = append(append(os.Environ(), callerVar+"="+folder), tc.env...)
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), tc.want) {
			t.Errorf("%s: %s", tc.name, out)
		}
	}
}

// A proxy ends by itself when no caller was there for a while, and not while one is.
func TestIdle(t *testing.T) {
	s := newServer((&world{}).outside(), boundedlog.New(io.Discard, 0))
	dir, err := os.MkdirTemp("/tmp", "proxy") //nolint:usetesting // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.serve(l) }()
	r := &rig{t: t, path: filepath.Join(dir, "s"), server: s}
	c := r.call(wire.RoleWatcher)
	ended := make(chan struct{})
	s.endIdle(time.Millisecond, func() { l.Close(); close(ended) })
	wait.Until(t, "the timer", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.idle.Stop()
	})
	select {
	case <-ended:
		t.Error("it ends while a caller is there")
	default:
	}
	c.Close()
	<-ended
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// What is no proper registration is refused with words.
func TestRegistrationsRefused(t *testing.T) {
	r := newServerRig(t)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	packet, err := udp.(*net.UDPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer packet.Close()
	for _, tc := range []struct {
		name   string
		change func(*wire.Register, *[]*os.File)
		words  string
	}{
		{"good", nil, ""},
		{"no name", func(reg *wire.Register, _ *[]*os.File) { reg.Session = "" }, "has a name"},
		{"a long name", func(reg *wire.Register, _ *[]*os.File) { reg.Session = strings.Repeat("x", 300) }, "has a name"},
		{"an unknown kind", func(reg *wire.Register, _ *[]*os.File) { reg.Sockets[0].Kind = "door" }, "no such kind"},
		{"no socket", func(_ *wire.Register, files *[]*os.File) { (*files)[0] = packet }, "socket 0 (proxy)"},
		{"an unknown host", func(reg *wire.Register, _ *[]*os.File) {
			reg.Sockets[0] = wire.Socket{Kind: wire.KindNamed, Host: 3, Port: 1}
		}, "host 3 of 1"},
		{"an unknown provider", func(reg *wire.Register, _ *[]*os.File) { reg.Keys = []wire.Key{{Provider: "none", Value: "x"}} }, "key of none"},
		{"a key of two lines", func(reg *wire.Register, _ *[]*os.File) {
			reg.Keys = []wire.Key{{Provider: "anthropic", Value: "secret\r\nX: y"}}
		}, "no header has"},
		{"a bad upstream", func(reg *wire.Register, _ *[]*os.File) { reg.Upstream.Proxy = "socks5://x" }, "https_proxy"},
		{"bad authorities", func(reg *wire.Register, _ *[]*os.File) { reg.Upstream.Authorities = []byte("x") }, "certificate"},
	} {
		c, m := r.register("coder-1", public("example.org"), tc.change)
		switch {
		case tc.words == "" && m.Registered == nil:
			t.Errorf("%s: %+v", tc.name, m.Refused)
		case tc.words != "" && (m.Refused == nil || !strings.Contains(m.Refused.Text, tc.words) || strings.Contains(m.Refused.Text, "secret")):
			t.Errorf("%s: %+v", tc.name, m)
		}
		c.Close()
		wait.Until(t, "the end of the session", func() bool { return r.server.session("coder-1") == nil })
	}

	s, err := net.Dial("unix", r.path)
	if err != nil {
		t.Fatal(err)
	}
	c := wire.NewConn(s.(*net.UnixConn))
	defer c.Close()
	if err := c.Send(wire.Message{Hello: &wire.Hello{Version: 999, Role: wire.RoleWatcher}}); err != nil {
		t.Fatal(err)
	}
	if m, _, err := c.Receive(); err != nil || m.Refused == nil || !strings.Contains(m.Refused.Text, "another version") {
		t.Errorf("another version: %+v, %v", m, err)
	}
}
