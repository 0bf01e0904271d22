package shim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// TestNoSurvivor: whatever way an agent with a wide tree ends, nothing of it is left when Done is closed.
func TestNoSurvivor(t *testing.T) {
	ways := map[string]func(t *testing.T, h *Handle, st Status){
		"the agent is killed": func(t *testing.T, h *Handle, st Status) { syscall.Kill(st.AgentPID, syscall.SIGKILL) },
		"it is ended":         func(t *testing.T, h *Handle, st Status) { ok(t, h.End(t.Context(), 50*time.Millisecond)) },
		"it is ended at once": func(t *testing.T, h *Handle, st Status) { ok(t, h.End(t.Context(), 0)) },
		"the shim is told":    func(t *testing.T, h *Handle, st Status) { syscall.Kill(st.ShimPID, syscall.SIGTERM) },
	}
	for name, end := range ways {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			spec := agent(t, "tree")
			spec.Grace = 50 * time.Millisecond
			h := start(t, dir, spec)
			leaves := lines(t, h, 3)
			var st Status
			wait.Until(t, "three children, the one between is gone", func() bool {
				var err error
				st, err = h.Status(t.Context())
				return err == nil && st.Children == 3
			})
			pids := make([]int, len(leaves))
			for i, l := range leaves {
				pids[i] = outside(t, st.ShimPID, strings.Fields(l)[2])
			}
			end(t, h, st)
			st = done(t, h)
			for i, l := range leaves { // proof at this instant, not in a while
				if p, there := readProcess(pids[i]); there && !p.zombie {
					t.Errorf("%s survived", l)
				}
			}
			if st.Phase != Exited || st.Exit.Code != -1 ||
				st.Exit.Swept != 3 && !inView() && !strings.Contains(name, "end") && !strings.Contains(name, "told") {
				t.Fatalf("%+v %+v", st, st.Exit)
			}
		})
	}
}

// TestLeftBehind: an agent that goes by itself takes its tree along.
func TestLeftBehind(t *testing.T) {
	h := start(t, t.TempDir(), agent(t, "tree", "leave"))
	st := done(t, h)
	noSurvivor(t, h.Folder())
	if st.Phase != Exited || st.Exit.Code != 0 || st.Exit.Swept == 0 {
		t.Fatalf("%+v %+v", st, st.Exit)
	}
}

// TestShedMark: while the shim lives, not even a process without any mark gets away.
func TestShedMark(t *testing.T) {
	spec := agent(t, "shed")
	h := start(t, t.TempDir(), spec)
	st, err := h.Status(t.Context())
	ok(t, err)
	pid := outside(t, st.ShimPID, strings.Fields(lines(t, h, 1)[0])[2])
	if len(marksIn(environOf(pid))) != 0 {
		t.Fatal("it kept its mark, so this proves nothing")
	}
	ok(t, syscall.Kill(st.AgentPID, syscall.SIGKILL))
	done(t, h)
	if p, there := readProcess(pid); there && !p.zombie {
		syscall.Kill(pid, syscall.SIGKILL)
		t.Fatal("it survived")
	}
}

// TestHelloIsFollowedByTheSize: otherwise, what was spooled between the status and the first event
// would be reported only with the next byte.
func TestHelloIsFollowedByTheSize(t *testing.T) {
	h := start(t, t.TempDir(), agent(t, "hang"))
	lines(t, h, 1)
	conn, st, err := dial(t.Context(), filepath.Join(runtimedir.Dirs()[0], runtimedir.SocketName("h", h.Folder())), 1)
	ok(t, err)
	defer conn.Close()
	var a answer
	ok(t, conn.SetReadDeadline(time.Now().Add(patience)))
	if err := readFrame(conn, frameBytesMax, &a); err != nil || a.Event != "spool" || a.Size != st.SpoolBytes || a.Size == 0 {
		t.Fatalf("%+v %v", a, err)
	}
}

// TestShimKilled: the tree goes, and the session is lost, not doubled, not forgotten.
func TestShimKilled(t *testing.T) {
	dir := t.TempDir()
	spec := agent(t, "tree")
	h := start(t, dir, spec)
	lines(t, h, 3)
	st, err := h.Status(t.Context())
	ok(t, err)
	ok(t, syscall.Kill(st.ShimPID, syscall.SIGKILL))
	st = done(t, h)
	noSurvivor(t, dir)
	if st.Phase != Lost || st.Why == "" || len(st.Swept) == 0 && !inView() {
		t.Fatalf("%+v", st)
	}
	if got := strings.Count(string(output(t, h, 0)), "\n"); got != 3 {
		t.Fatalf("%d lines of what was spooled", got)
	}
	if _, err := Start(t.Context(), dir, spec); !errors.As(err, new(*spawn.AlreadyStarted)) {
		t.Fatal(err)
	}
	_, st, err = Adopt(t.Context(), dir, 1)
	if err != nil || st.Phase != Lost {
		t.Fatalf("%+v %v", st, err)
	}
}

// TestStrays: a process without a shim is found by its mark, and no other process is.
func TestStrays(t *testing.T) {
	dir, dir2 := t.TempDir(), t.TempDir()
	spec := agent(t, "tree")
	h := start(t, dir, spec)
	spec.Session = "t-2"
	h2 := start(t, dir2, spec)
	lines(t, h, 3)
	lines(t, h2, 3)
	if s, err := Strays(spec.Workspace); err != nil || len(s) != 0 {
		t.Fatalf("%v %v", s, err)
	}
	st, err := h.Status(t.Context())
	ok(t, err)
	h.Close() // a handle that is open would sweep by itself
	ok(t, syscall.Kill(st.ShimPID, syscall.SIGKILL))
	left := 3
	if inView() {
		left = 0 // the view ends with its process 1
	}
	wait.Until(t, "the shim and the agent are gone, the leaves are strays", func() bool {
		if p, is := readProcess(st.ShimPID); is && !p.zombie {
			return false // as long as it lives its agent's tree is none of strays
		}
		s, err := Strays(spec.Workspace)
		return err == nil && len(s) == left && !alive(st.AgentPID, st.StartTime) &&
			!slices.ContainsFunc(s, func(p Process) bool { return p.Session != "t-1" })
	})
	ended, err := EndStrays(t.Context(), spec.Workspace)
	if err != nil || len(ended) != left {
		t.Fatalf("%v %v", ended, err)
	}
	if s, err := Strays(spec.Workspace); err != nil || len(s) != 0 {
		t.Fatalf("%v %v", s, err)
	}
	if st, err := h2.Status(t.Context()); err != nil || st.Children < 3 {
		t.Fatalf("the other session was touched: %+v %v", st, err)
	}
}

// TestForkBomb: processes that fork, each in a session of its own, and end at once.
func TestForkBomb(t *testing.T) {
	spec := agent(t, "bomb")
	h := start(t, t.TempDir(), spec)
	done(t, h)
	noSurvivor(t, h.Folder())
}

// TestDeaf: an agent that ignores SIGTERM and SIGINT is killed after the grace, not before.
func TestDeaf(t *testing.T) {
	h := start(t, t.TempDir(), agent(t, "deaf"))
	lines(t, h, 1)
	ok(t, h.Interrupt(t.Context()))
	const grace = 100 * time.Millisecond
	began := time.Now()
	ok(t, h.End(t.Context(), grace))
	st := done(t, h)
	if took := time.Since(began); took < grace || st.Exit.Signal != "SIGKILL" || st.Exit.Code != -1 || !st.Exit.Ordered {
		t.Fatalf("after %v: %+v", took, st.Exit)
	}
}

// TestEndAgain: a second order may shorten the grace, never lengthen it.
func TestEndAgain(t *testing.T) {
	h := start(t, t.TempDir(), agent(t, "deaf"))
	lines(t, h, 1)
	ok(t, h.End(t.Context(), time.Hour))
	ok(t, h.End(t.Context(), 2*time.Hour))
	ok(t, h.End(t.Context(), 0))
	done(t, h)
	ok(t, h.End(t.Context(), 0)) // ending what has ended is no error
}

// TestInterrupt: SIGINT reaches the agent and says so in its exit.
func TestInterrupt(t *testing.T) {
	spec := agent(t)
	spec.Launch.Argv = []string{"/bin/sleep", "100"}
	h := start(t, t.TempDir(), spec)
	ok(t, h.Interrupt(t.Context()))
	if st := done(t, h); st.Exit.Signal != "SIGINT" {
		t.Fatalf("%+v", st.Exit)
	}
}

// TestCrashAnywhere: a shim that dies at any step never leaves room for a second agent.
func TestCrashAnywhere(t *testing.T) {
	before := []string{"locked", "fenced"}
	during := []string{"intent", "entering", "forked", "started", "replied"}
	if inView() {
		during = append(during, "points")
	}
	after := []string{"agent_ended", "tree_gone", "spool_synced", "exit_synced"}
	for _, step := range append(append(before, during...), after...) {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			ran := filepath.Join(dir, "ran")
			spec := agent(t, "note", ran)
			crashing := spec
			crashing.Exe = crasher(t, step)
			h, err := Start(t.Context(), dir, crashing)
			if err == nil {
				h.End(t.Context(), 0) // the steps after the agent's end
				done(t, h)
				h.Close()
			}
			h, st, err := Adopt(t.Context(), dir, 1)
			ok(t, err)
			defer h.Close()
			noSurvivor(t, dir)
			again, err := Start(t.Context(), dir, spec)
			if st.Phase == NeverStarted {
				ok(t, err)
				lines(t, again, 1)
				again.End(t.Context(), 0)
				done(t, again)
				again.Close()
			} else if !errors.As(err, new(*spawn.AlreadyStarted)) {
				t.Fatalf("%v after %+v", err, st)
			}
			want := Lost
			if slices.Contains(before, step) {
				want = NeverStarted // nothing was promised yet: it may be tried again
			} else if step == "exit_synced" {
				want = Exited
			}
			if st.Phase != want {
				t.Fatalf("%+v, want %s", st, want)
			}
			raw, _ := os.ReadFile(ran)
			if n := strings.Count(string(raw), "\n"); n > 1 {
				t.Fatalf("%d agents ran", n)
			}
		})
	}
}

// crasher gives a program that is this test binary with a crash ordered.
func crasher(t *testing.T, step string) string {
	path := filepath.Join(t.TempDir(), "crasher")
	ok(t, os.WriteFile(path, []byte(fmt.Sprintf("#!/bin/sh\n%s=%s exec '%s' \"$@\"\n", crashVar, step, self(t))), 0o700))
	return path
}

// TestAdoptWithoutSocket: the runtime folder was emptied and no daemon is connected; the next daemon
// still connects.
func TestAdoptWithoutSocket(t *testing.T) {
	dir := t.TempDir()
	h := start(t, dir, agent(t, "hang"))
	lines(t, h, 1)
	h.Close()
	ok(t, os.RemoveAll(runtimedir.Dirs()[0]))
	h2, st, err := Adopt(t.Context(), dir, 2)
	if err != nil || st.Phase != Running {
		t.Fatalf("%+v %v", st, err)
	}
	ok(t, h2.End(t.Context(), 0))
	done(t, h2)
	h2.Close()
	if left, err := os.ReadDir(runtimedir.Dirs()[0]); err != nil || len(left) != 0 {
		t.Fatalf("left in the runtime folder: %v %v", left, err)
	}
}

// TestSocketIsMadeAgain: the shim by itself notices that its socket vanished.
func TestSocketIsMadeAgain(t *testing.T) {
	h := start(t, t.TempDir(), agent(t, "hang"))
	lines(t, h, 1)
	h.Close()
	path := filepath.Join(runtimedir.Dirs()[0], runtimedir.SocketName("h", h.Folder()))
	ok(t, os.RemoveAll(runtimedir.Dirs()[0]))
	wait.Until(t, "the socket is there again", func() bool { _, err := os.Lstat(path); return err == nil })
	h2, st, err := Adopt(t.Context(), h.Folder(), 2)
	if err != nil || st.Phase != Running {
		t.Fatalf("%+v %v", st, err)
	}
	ok(t, h2.End(t.Context(), 0))
	done(t, h2)
	h2.Close()
}

// TestShimStopped: a shim that is stopped (a debugger, a full machine) is
// waited for, not declared dead; and a second daemon may give up waiting.
func TestShimStopped(t *testing.T) {
	h := start(t, t.TempDir(), agent(t, "hang"))
	lines(t, h, 1)
	st, err := h.Status(t.Context())
	ok(t, err)
	ok(t, syscall.Kill(st.ShimPID, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(st.ShimPID, syscall.SIGCONT) })
	wait.Until(t, "it has stopped", func() bool { // the signal may arrive while it answers
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", st.ShimPID))
		return err == nil && strings.Contains(string(status), "State:\tT")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, st, err := Adopt(ctx, h.Folder(), 2); err == nil {
		t.Fatalf("%+v", st)
	}
	if !alive(st.AgentPID, st.StartTime) {
		t.Fatal("the agent was ended although its shim lives")
	}
	ok(t, syscall.Kill(st.ShimPID, syscall.SIGCONT))
	if _, err := h.Status(t.Context()); err != nil && !errors.As(err, new(*Fenced)) {
		t.Fatal(err)
	}
	h2, _, err := Adopt(t.Context(), h.Folder(), 3)
	ok(t, err)
	ok(t, h2.End(t.Context(), 0))
	done(t, h2)
	h2.Close()
}

// TestDaemonKilled: SIGKILL the daemon in the middle of the output; the adopting daemon gets every
// byte once.
func TestDaemonKilled(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(self(t), "__daemon", dir, self(t), "__agent", "count")
	cmd.Env = os.Environ()
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	said := make([]byte, len("started\n"))
	if _, err := out.Read(said); err != nil || string(said) != "started\n" {
		t.Fatalf("%q %v", said, err)
	}
	ok(t, cmd.Process.Kill())
	cmd.Wait()
	h, st, err := Adopt(t.Context(), dir, 2)
	ok(t, err)
	defer h.Close()
	if st.Phase != Running {
		t.Fatalf("%+v", st)
	}
	got := lines(t, h, 500)
	ok(t, h.End(t.Context(), 0))
	done(t, h)
	noSurvivor(t, dir)
	for i, l := range got {
		if l != fmt.Sprint("line ", i) {
			t.Fatalf("line %d is %q", i, l)
		}
	}
}

// TestShimKeepsNothing: no descriptor of the daemon's, no terminal, no secret in its own environment.
func TestShimKeepsNothing(t *testing.T) {
	r, w, err := os.Pipe()
	ok(t, err)
	defer r.Close()
	defer w.Close()
	// a careless descriptor, not close-on-exec
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, w.Fd(), syscall.F_SETFD, 0); errno != 0 {
		t.Fatal(errno)
	}
	t.Setenv("FAIRLEAD_TEST_SECRET", "hunter2")
	spec := agent(t, "hang")
	dir := t.TempDir()
	h := start(t, dir, spec)
	lines(t, h, 1)
	st, err := h.Status(t.Context())
	ok(t, err)
	proc := fmt.Sprintf("/proc/%d/", st.ShimPID)
	pipe, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", w.Fd()))
	ok(t, err)
	fds, err := os.ReadDir(proc + "fd")
	ok(t, err)
	for _, fd := range fds {
		if to, _ := os.Readlink(proc + "fd/" + fd.Name()); to == pipe || strings.HasPrefix(to, "/dev/pts") {
			t.Errorf("the shim holds %s as %s", to, fd.Name())
		}
	}
	if strings.Contains(string(environOf(st.ShimPID)), "hunter2") {
		t.Error("the shim's environment has the agent's secrets")
	}
	filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if raw, _ := os.ReadFile(p); strings.Contains(string(raw), "hunter2") {
			t.Errorf("%s has the agent's secrets", p)
		}
		return err
	})
	if !strings.Contains(string(environOf(st.AgentPID)), "hunter2") {
		t.Error("the agent has not got its environment")
	}
	status, _ := os.ReadFile(proc + "status")
	for l := range strings.Lines(string(status)) {
		if strings.HasPrefix(l, "VmRSS") || strings.HasPrefix(l, "RssAnon") || strings.HasPrefix(l, "Threads") {
			t.Log(strings.TrimSpace(l))
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		ok(t, syscall.Kill(st.ShimPID, sig))
	}
	if _, err := h.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestDiskFull: the agent waits, the status says why, and the exit still finds its place.
func TestDiskFull(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=512k"); err != nil {
		t.Skip("needs a small disk, and so the right to mount one: ", err)
	}
	defer syscall.Unmount(disk, syscall.MNT_DETACH)
	h, err := Start(t.Context(), filepath.Join(disk, "s"), agent(t, "bytes", "4000000"))
	ok(t, err)
	defer h.Close()
	wait.Until(t, "the spool takes nothing", func() bool {
		st, err := h.Status(t.Context())
		return err == nil && strings.Contains(st.SpoolError, "no space left")
	})
	ok(t, h.End(t.Context(), 0))
	st := done(t, h)
	want, _ := io.ReadAll(io.LimitReader(stream(), st.SpoolBytes))
	if got := output(t, h, 0); !bytes.Equal(got, want) || len(got) == 0 || st.Phase != Exited || st.Exit.CutBytes == 0 {
		t.Fatalf("%d bytes, %+v %+v", len(got), st, st.Exit)
	}
}

// TestDaemonKilledAtTheStart: a daemon that dies while it starts an agent, at
// whatever instant, leaves none or one, and the next one knows which.
func TestDaemonKilledAtTheStart(t *testing.T) {
	for _, ms := range []int{2, 8, 12, 16, 20, 28} {
		t.Run(fmt.Sprint(ms, "ms"), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "s")
			ran := filepath.Join(t.TempDir(), "ran")
			cmd := exec.Command(self(t), "__daemon", dir, self(t), "__agent", "note", ran)
			ok(t, cmd.Start())
			wait.Pause(time.Duration(ms) * time.Millisecond)
			ok(t, cmd.Process.Kill())
			cmd.Wait()
			h, st, err := Adopt(t.Context(), dir, 2)
			ok(t, err)
			if st.Phase == NeverStarted {
				h.Close()
				spec := agent(t, "note", ran)
				spec.Fence = 2
				h, err = Start(t.Context(), dir, spec)
				ok(t, err)
			}
			lines(t, h, 1)
			ok(t, h.End(t.Context(), 0))
			done(t, h)
			h.Close()
			noSurvivor(t, dir)
			raw, err := os.ReadFile(ran)
			if n := strings.Count(string(raw), "\n"); err != nil || n != 1 {
				t.Fatalf("%d agents ran; first seen as %s", n, st.Phase)
			}
		})
	}
}
