package shim

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// look compares what a look says with what adopting says, and proves that it left no trace.
func look(t *testing.T, folder string) Sight {
	t.Helper()
	was := trace(t, folder)
	s, err := Look(t.Context(), folder)
	ok(t, err)
	if now := trace(t, folder); now != was {
		t.Errorf("the look left a trace:\n%s\n%s", was, now)
	}
	return s
}

// trace is everything in a folder, with its times.
func trace(t *testing.T, folder string) string {
	t.Helper()
	names, err := os.ReadDir(folder)
	if os.IsNotExist(err) {
		return "none"
	}
	ok(t, err)
	var all strings.Builder
	for _, entry := range names {
		info, err := entry.Info()
		ok(t, err)
		if entry.Name() == spoolFile || entry.Name() == logFile {
			continue // the agent goes on talking
		}
		raw, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		ok(t, err)
		all.WriteString(entry.Name() + " " + info.ModTime().String() + " " + string(raw) + "\n")
	}
	return all.String()
}

// A look sees what adopting would find, in every phase, and touches nothing.
func TestLook(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "coder-1")
	if s := look(t, dir); s.Phase != NeverStarted {
		t.Errorf("no folder: %+v", s)
	}
	ok(t, os.Mkdir(dir, 0o700))
	if s := look(t, dir); s.Phase != NeverStarted {
		t.Errorf("an empty folder: %+v", s)
	}
	ok(t, os.Remove(dir))
	h := start(t, dir, agent(t, "hang"))
	lines(t, h, 1)
	st, err := h.Status(t.Context())
	ok(t, err)
	var s Sight
	wait.Until(t, "its shim answers in time", func() bool { s = look(t, dir); return s.Answers })
	if s.Phase != Running || s.Agent != Lives || s.Shim != Lives || s.AgentPID != st.AgentPID || s.Fence != st.Fence {
		t.Errorf("it runs: %+v", s)
	}
	if _, err := h.Status(t.Context()); err != nil {
		t.Errorf("the look has shown the daemon out: %v", err)
	}
	ok(t, syscall.Kill(st.ShimPID, syscall.SIGSTOP))
	began := time.Now()
	wait.Until(t, "it is seen to be stopped", func() bool { return LifeOf(st.ShimPID, 0) == Stopped })
	if s := look(t, dir); s.Phase != Running || s.Answers || s.Shim != Stopped || s.Agent != Lives || s.Silence == "" {
		t.Errorf("its shim is stopped: %+v", s)
	}
	if took := time.Since(began); took > 60*lookPatience {
		t.Errorf("a look at a silent shim took %v", took)
	}
	ok(t, syscall.Kill(st.ShimPID, syscall.SIGCONT))
	ok(t, h.End(t.Context(), 0))
	st = done(t, h)
	if s := look(t, dir); s.Phase != Exited || s.Exit == nil || s.Exit.Signal != st.Exit.Signal || s.Acked || s.Agent != Gone {
		t.Errorf("it has ended: %+v", s)
	}
	ok(t, h.Ack(t.Context()))
	if s := look(t, dir); !s.Acked {
		t.Errorf("its end was acknowledged: %+v", s)
	}
}

// What a shim that was killed has left is seen as lost, and is left for adopting to end.
func TestLookAtTheLost(t *testing.T) {
	dir := t.TempDir()
	h := start(t, dir, agent(t, "hang"))
	lines(t, h, 1)
	st, err := h.Status(t.Context())
	ok(t, err)
	ok(t, h.Close())
	ok(t, syscall.Kill(st.ShimPID, syscall.SIGKILL))
	wait.Until(t, "its lock is free", func() bool { held, err := isHeld(dir); return err == nil && !held })
	s := look(t, dir)
	if s.Phase != Lost || !strings.Contains(s.Why, "without an exit record") {
		t.Errorf("%+v", s)
	}
	_, adopted, err := Adopt(t.Context(), dir, 9)
	ok(t, err)
	if adopted.Phase != s.Phase || adopted.Why != s.Why {
		t.Errorf("adopting says %s (%s), the look %s (%s)", adopted.Phase, adopted.Why, s.Phase, s.Why)
	}
}

// A process is named by its start time, too.
func TestLifeOf(t *testing.T) {
	self, there := readProcess(os.Getpid())
	if !there {
		t.Fatal("we are not in the process table")
	}
	for _, c := range []struct {
		pid   int
		start uint64
		want  Life
	}{{0, 0, LifeUnknown}, {self.PID, self.Start, Lives}, {self.PID, self.Start + 1, Reused}, {1 << 30, 0, Gone}} {
		if life := LifeOf(c.pid, c.start); life != c.want {
			t.Errorf("process %d since %d: %q, not %q", c.pid, c.start, life, c.want)
		}
	}
}

// A socket without a listener is stale when it is old enough; one that another process took over
// meanwhile is not removed.
func TestSockets(t *testing.T) {
	t.Setenv(runtimedir.Var, t.TempDir())
	dir := runtimedir.Dirs()[0]
	ok(t, runtimedir.Private(dir))
	listen := func(name string, age time.Duration, stay bool) string {
		path := filepath.Join(dir, name)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		ok(t, err)
		l.SetUnlinkOnClose(false)
		if stay {
			t.Cleanup(func() { l.Close() })
		} else {
			ok(t, l.Close())
		}
		ok(t, os.Chtimes(path, time.Time{}, time.Now().Add(-age)))
		return path
	}
	stale := listen("h-stale", time.Minute, false)
	taken := listen("h-taken", time.Minute, false)
	lives := listen("d-lives", time.Minute, true)
	young := listen("h-young", 0, false)
	ok(t, os.WriteFile(filepath.Join(dir, "h-file"), nil, 0o600)) // not ours to judge
	found := map[string]Socket{}
	for _, s := range Sockets() {
		found[s.Path] = s
	}
	for path, want := range map[string]bool{stale: true, taken: true, lives: false, young: false} {
		if s, seen := found[path]; !seen || s.Stale != want || s.Fault != "" {
			t.Errorf("%s: %+v", path, s)
		}
	}
	ok(t, os.Remove(taken))
	listen("h-taken", 0, true)
	for _, path := range []string{stale, taken, lives} {
		ok(t, found[path].Remove())
	}
	for path, want := range map[string]bool{stale: false, taken: true, lives: true} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: there: %v", path, err == nil)
		}
	}
	ok(t, os.Chmod(dir, 0o755))
	if all := Sockets(); len(all) == 0 || all[0].Path != dir || !strings.Contains(all[0].Fault, "mode") {
		t.Errorf("a folder that others can look into: %+v", all)
	}
}

// If an agent replaced a file of its session, the file is not opened: a link would show other files
// as the agent's output, and a pipe would block the reader forever.
func TestPlantedFiles(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	ok(t, os.WriteFile(secret, []byte("{}\n"), 0o600))
	for name, plant := range map[string]func(string) error{
		"second name": func(path string) error { return os.Link(secret, path) },
		"link":        func(path string) error { return os.Symlink(secret, path) },
		"pipe":        func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder":      func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		for _, file := range []string{spoolFile, agentFile, exitFile, fenceFile, lockFile} {
			t.Run(name+" as "+file, func(t *testing.T) {
				folder := t.TempDir()
				ok(t, plant(filepath.Join(folder, file)))
				if file == spoolFile {
					if out, err := Output(folder, 0); err == nil {
						out.Close()
						t.Error("it was read")
					}
					return
				}
				_, err := Look(t.Context(), folder)
				if file == fenceFile { // who only looks does not ask for it
					_, err = readFence(folder)
				}
				if err == nil {
					t.Error("it was read")
				}
			})
		}
	}
}
