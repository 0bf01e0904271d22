package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// TestOneFolderOneAgent: of many starts at once one succeeds, and the rest know.
func TestOneFolderOneAgent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	ran := filepath.Join(t.TempDir(), "ran")
	spec := agent(t, "note", ran)
	const starters = 6
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		handles []*Handle
	)
	for range starters {
		wg.Go(func() {
			h, err := Start(context.Background(), dir, spec)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				handles = append(handles, h)
			} else if before, is := errors.AsType[*spawn.AlreadyStarted](err); !is || before.Session != spec.Session {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(handles) != 1 {
		t.Fatalf("%d succeeded", len(handles))
	}
	lines(t, handles[0], 1)
	ok(t, handles[0].End(t.Context(), 0))
	done(t, handles[0])
	handles[0].Close()
	raw, err := os.ReadFile(ran)
	if n := strings.Count(string(raw), "\n"); err != nil || n != 1 {
		t.Fatalf("%d agents ran, %v", n, err)
	}
}

// TestFence: the highest epoch is obeyed, durably, and the older daemon is shown out.
func TestFence(t *testing.T) {
	dir := t.TempDir()
	spec := agent(t, "hang")
	spec.Fence = 5
	h := start(t, dir, spec)
	lines(t, h, 1)
	ctx := t.Context()
	var fenced *Fenced
	if _, _, err := Adopt(ctx, dir, 4); !errors.As(err, &fenced) || fenced.Seen != 5 {
		t.Fatal(err)
	}
	same, _, err := Adopt(ctx, dir, 5) // the same daemon may connect twice
	ok(t, err)
	defer same.Close()
	if _, err := h.Status(ctx); err != nil {
		t.Fatal(err)
	}
	r, err := h.Output(ctx, 6)
	ok(t, err)
	defer r.Close()
	next, st, err := Adopt(ctx, dir, 6)
	ok(t, err)
	defer next.Close()
	if st.Fence != 6 {
		t.Fatalf("%+v", st)
	}
	for _, old := range []*Handle{h, same} {
		select {
		case <-old.Done():
		case <-time.After(patience):
			t.Fatal("the old handle was not told")
		}
		if err := old.End(ctx, 0); !errors.As(err, &fenced) || fenced.Mine != 5 || fenced.Seen != 6 {
			t.Fatal(err)
		}
	}
	if _, err := r.Read(make([]byte, 1)); !errors.As(err, &fenced) {
		t.Fatal(err)
	}
	ok(t, next.End(ctx, 0))
	done(t, next)
	over, st, err := Adopt(ctx, dir, 5) // nothing is left that two daemons could give orders to
	ok(t, err)
	defer over.Close()
	if st.Phase != Exited {
		t.Fatalf("%+v", st)
	}
	if err := h.Ack(ctx); err == nil {
		t.Fatal("a fenced daemon acknowledged")
	}
}

// TestFenceBeforeStart: a start that is under way when a new daemon looks cannot succeed behind its back.
// Nor where its folder was not even made yet.
func TestFenceBeforeStart(t *testing.T) {
	for name, dir := range map[string]string{"folder": t.TempDir(), "no folder": filepath.Join(t.TempDir(), "sessions", "coder-1")} {
		t.Run(name, func(t *testing.T) {
			h, st, err := Adopt(t.Context(), dir, 7)
			if err != nil || st.Phase != NeverStarted {
				t.Fatalf("%+v %v", st, err)
			}
			defer h.Close()
			<-h.Done()
			if _, err := Start(t.Context(), dir, agent(t, "hang")); !errors.As(err, new(*Fenced)) {
				t.Fatal(err)
			}
		})
	}
}

// TestCannotStart: the words say what to do, and the folder keeps them.
func TestCannotStart(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	ok(t, os.WriteFile(text, []byte("hello"), 0o600))
	noexec := filepath.Join(t.TempDir(), "noexec")
	ok(t, os.WriteFile(noexec, []byte("\x7fELF nonsense"), 0o700))
	cases := map[string]struct {
		argv []string
		dir  string
		want string
	}{
		"not in PATH":    {[]string{"no-such-agent"}, "", `no program "no-such-agent" in the agent's PATH`},
		"not there":      {[]string{"/no/such/agent"}, "", "does not exist"},
		"not executable": {[]string{text}, "", "chmod +x"},
		"a folder":       {[]string{"/tmp/"}, "", "is a folder"},
		"no program":     {[]string{noexec}, "", "exec format error"},
		"no folder":      {[]string{"/bin/true"}, "/no/such/folder", "working directory /no/such/folder does not exist"},
		"nothing":        {nil, "", "the command is empty"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			spec := agent(t)
			spec.Launch.Argv, spec.Launch.Dir = c.argv, c.dir
			for range 2 { // the second time from the record
				var cannot *spawn.CannotStart
				if _, err := Start(t.Context(), dir, spec); !errors.As(err, &cannot) || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("%v, want %q", err, c.want)
				}
			}
			if c.argv == nil {
				return
			}
			h, st, err := Adopt(t.Context(), dir, 1)
			if err != nil || st.Phase != NeverStarted || !strings.Contains(st.Why, c.want) {
				t.Fatalf("%+v %v", st, err)
			}
			h.Close()
		})
	}
}

// TestFolders: a folder may have a long name or be reached by a link, and must be ours to write.
func TestFolders(t *testing.T) {
	t.Run("300 characters", func(t *testing.T) {
		dir := t.TempDir()
		for len(dir) < 300 {
			dir = filepath.Join(dir, strings.Repeat("d", 40))
		}
		link := filepath.Join(t.TempDir(), "link")
		ok(t, os.Symlink(dir, link))
		h := start(t, dir, agent(t, "hang"))
		lines(t, h, 1)
		h2, st, err := Adopt(t.Context(), link, 1)
		if err != nil || st.Phase != Running {
			t.Fatalf("%+v %v", st, err)
		}
		h2.Close()
	})
	t.Run("unwritable", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file") // root may write everywhere, but not below a file
		ok(t, os.WriteFile(file, nil, 0o600))
		_, err := Start(t.Context(), filepath.Join(file, "s"), agent(t, "hang"))
		if err == nil || !strings.Contains(err.Error(), "must be ours to write") {
			t.Fatal(err)
		}
	})
	t.Run("not there", func(t *testing.T) {
		h, st, err := Adopt(t.Context(), filepath.Join(t.TempDir(), "no"), 1)
		if err != nil || st.Phase != NeverStarted {
			t.Fatalf("%+v %v", st, err)
		}
		h.Close()
	})
	t.Run("damaged record", func(t *testing.T) {
		dir := t.TempDir()
		ok(t, os.WriteFile(filepath.Join(dir, agentFile), []byte("{"), 0o600))
		if _, err := Start(t.Context(), dir, agent(t, "hang")); !errors.As(err, new(*spawn.AlreadyStarted)) {
			t.Fatal(err)
		}
		_, st, err := Adopt(t.Context(), dir, 1)
		if err != nil || st.Phase != Lost || !strings.Contains(st.Why, "damaged") {
			t.Fatalf("%+v %v", st, err)
		}
	})
}

// TestRuntimeDir: a runtime folder that another user prepared is not used.
func TestRuntimeDir(t *testing.T) {
	dir := t.TempDir()
	ok(t, os.Symlink(t.TempDir(), filepath.Join(dir, "link")))
	if err := runtimedir.Private(filepath.Join(dir, "link")); err == nil || !strings.Contains(err.Error(), "link") {
		t.Fatal(err)
	}
	ok(t, os.Mkdir(filepath.Join(dir, "open"), 0o777))
	ok(t, runtimedir.Private(filepath.Join(dir, "open")))
	if info, err := os.Stat(filepath.Join(dir, "open")); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("%v %v", info, err)
	}
	if os.Getuid() == 0 {
		ok(t, os.Mkdir(filepath.Join(dir, "foreign"), 0o700))
		ok(t, os.Chown(filepath.Join(dir, "foreign"), 12345, 12345))
		if err := runtimedir.Private(filepath.Join(dir, "foreign")); err == nil || !strings.Contains(err.Error(), "another user") {
			t.Fatal(err)
		}
	}
}

// TestCancelledStart: a start that was given up, at whatever moment, leaves a folder that can be adopted.
func TestCancelledStart(t *testing.T) {
	for _, after := range []time.Duration{0, time.Millisecond, 4 * time.Millisecond, 8 * time.Millisecond, 16 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			dir, spec := t.TempDir(), agent(t, "hang")
			if h, err := Start(ctx, dir, spec); err == nil {
				h.Close()
			} else if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			h, st, err := Adopt(t.Context(), dir, 2)
			ok(t, err)
			defer h.Close()
			if st.Phase == Running {
				ok(t, h.End(t.Context(), 0))
				done(t, h)
			}
			wait.Until(t, "no shim is left", func() bool { return len(shimsOf(t, spec)) == 0 })
			noSurvivor(t, dir)
			if st.Phase == NeverStarted { // and none came behind our back
				if r, err := readAgent(dir); r != nil || err != nil {
					t.Fatalf("%+v %v", r, err)
				}
			}
		})
	}
}

func shimsOf(t *testing.T, s Spec) (found []Process) {
	all, err := processes()
	ok(t, err)
	for _, p := range all {
		if mark, has := envValue(environOf(p.PID), shimVar); has && mark == markOf(s.Workspace, s.Session) {
			found = append(found, p)
		}
	}
	return found
}

// TestReconnect: a connection that breaks while the shim lives is made again, unseen.
func TestReconnect(t *testing.T) {
	spec := agent(t, "cat")
	spec.Launch.KeepStdin = true
	h := start(t, t.TempDir(), spec)
	for i := range 20 {
		h.mu.Lock()
		if h.client != nil {
			h.client.conn.Close()
		}
		h.mu.Unlock()
		ok(t, h.Send(t.Context(), int64(2*i), []byte("a\n")))
	}
	ok(t, h.CloseInput(t.Context()))
	if got := string(output(t, h, 0)); got != strings.Repeat("a\n", 20) {
		t.Fatalf("%q", got)
	}
	done(t, h)
}

// TestSyncsOfASession: a start waits for two syncs, of the intent and of its folder's entry. A sync is most of what a start
// costs. The end of an agent that leaves no process behind does not read the process table, whose length is that of
// the machine.
func TestSyncsOfASession(t *testing.T) {
	h := start(t, t.TempDir(), agent(t, "costs", t.TempDir()))
	said := string(output(t, h, 0))
	var started, ended, looks int
	var result string
	if _, err := fmt.Sscanln(said, &started, &ended, &looks, &result); err != nil || result != "<nil>" {
		t.Fatalf("counts and result of a session: %q", said)
	}
	if started > 2 || ended > 2 || looks > 0 && haveSubreaper {
		t.Errorf("a start waits for %d syncs and an end for %d and %d reads of the process table, want 2, 2 and 0", started, ended, looks)
	}
	done(t, h)
}

// TestFenceOfDeadShim: the epoch of the start outlives the shim, also where no later daemon left a fence file.
func TestFenceOfDeadShim(t *testing.T) {
	dir := t.TempDir()
	spec := agent(t, "hang")
	spec.Fence = 5
	h := start(t, dir, spec)
	st, err := h.Status(t.Context())
	ok(t, err)
	h.Close()
	ok(t, syscall.Kill(st.ShimPID, syscall.SIGKILL))
	wait.Until(t, "no shim is left", func() bool { return len(shimsOf(t, spec)) == 0 })
	var fenced *Fenced
	if _, _, err := Adopt(t.Context(), dir, 4); !errors.As(err, &fenced) || fenced.Seen != 5 {
		t.Fatalf("an older daemon adopted it: %v", err)
	}
	lost, st, err := Adopt(t.Context(), dir, 5)
	ok(t, err)
	defer lost.Close()
	if st.Phase != Lost || st.Session != spec.Session {
		t.Fatalf("%+v", st)
	}
}
