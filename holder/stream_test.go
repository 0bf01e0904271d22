package holder

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestBytesExact: what the agent wrote is what is read, whatever it was.
func TestBytesExact(t *testing.T) {
	const mib = 1 << 20
	cases := map[string]struct {
		args []string
		want io.Reader
	}{
		"20 MiB line":   {[]string{"line", "20971520"}, bytes.NewReader(append(bytes.Repeat([]byte{'x'}, 20*mib), '\n'))},
		"binary":        {[]string{"bytes", "8388609"}, io.LimitReader(stream(), 8*mib+1)},
		"nothing":       {[]string{"bytes", "0"}, strings.NewReader("")},
		"half a line":   {[]string{"bytes", "3"}, io.LimitReader(stream(), 3)},
		"a pipe's size": {[]string{"bytes", "65536"}, io.LimitReader(stream(), 65536)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := start(t, t.TempDir(), agent(t, c.args...))
			want, _ := io.ReadAll(c.want)
			if got := output(t, h, 0); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, want %d", len(got), len(want))
			}
			at := int64(len(want) / 2)
			if got := output(t, h, at); !bytes.Equal(got, want[at:]) {
				t.Fatalf("from the middle: %d bytes", len(got))
			}
			if st := done(t, h); st.SpoolBytes != int64(len(want)) || st.Exit.CutBytes != 0 {
				t.Fatalf("%+v", st)
			}
		})
	}
}

// TestInputOffsets: input sent again is typed once; input with a gap is refused.
func TestInputOffsets(t *testing.T) {
	spec := agent(t, "cat")
	spec.Input, spec.KeepStdin = []byte("first "), true
	h := start(t, t.TempDir(), spec)
	ctx := t.Context()
	ok(t, h.Send(ctx, 0, []byte("first second "))) // overlaps what the launch carried
	ok(t, h.Send(ctx, 6, []byte("second ")))       // all of it is there
	ok(t, h.Send(ctx, 6, []byte("second third")))
	var gap *InputGap
	if err := h.Send(ctx, 99, []byte("x")); !errors.As(err, &gap) || gap.Taken != 18 {
		t.Fatal(err)
	}
	st, err := h.Status(ctx)
	if err != nil || st.InputOffset != 18 {
		t.Fatalf("%+v %v", st, err)
	}
	h2, _, err := Adopt(ctx, h.Folder(), 2) // the next daemon is not sure what arrived
	ok(t, err)
	defer h2.Close()
	ok(t, h2.Send(ctx, 13, []byte("third fourth")))
	ok(t, h2.CloseInput(ctx))
	if err := h2.Send(ctx, 25, []byte("x")); !errors.Is(err, ErrInputClosed) && !errors.Is(err, ErrEnded) {
		t.Fatal(err)
	}
	if got := string(output(t, h2, 0)); got != "first second third fourth" {
		t.Fatalf("%q", got)
	}
	if st := done(t, h2); st.Exit.Code != 0 {
		t.Fatalf("%+v", st.Exit)
	}
}

// TestBigInput: more than a frame, more than a pipe.
func TestBigInput(t *testing.T) {
	spec := agent(t, "cat")
	spec.KeepStdin = true
	h := start(t, t.TempDir(), spec)
	want, _ := io.ReadAll(io.LimitReader(stream(), 3<<20))
	ok(t, h.Send(t.Context(), 0, want))
	ok(t, h.CloseInput(t.Context()))
	if got := output(t, h, 0); !bytes.Equal(got, want) {
		t.Fatalf("%d bytes", len(got))
	}
	done(t, h)
}

// TestInputFull: an agent that does not read cannot fill the holder's memory.
func TestInputFull(t *testing.T) {
	spec := agent(t, "hang")
	spec.KeepStdin = true
	h := start(t, t.TempDir(), spec)
	piece := make([]byte, 1<<20)
	var full *InputFull
	for at := int64(0); ; at += int64(len(piece)) {
		err := h.Send(t.Context(), at, piece)
		if errors.As(err, &full) {
			break
		}
		ok(t, err)
		if at > 2*inputWaitingMax {
			t.Fatal("it never said that it is full")
		}
	}
	ok(t, h.End(t.Context(), 0))
	done(t, h)
}

// TestSpoolFull: at the limit the agent waits, the status says so, and a raised limit lets it go on.
func TestSpoolFull(t *testing.T) {
	spec := agent(t, "bytes", "1000000")
	spec.SpoolMax = 100_000
	h := start(t, t.TempDir(), spec)
	var st Status
	until(t, "the spool is full", func() bool {
		var err error
		st, err = h.Status(t.Context())
		return err == nil && st.SpoolFull && st.SpoolBytes == 100_000
	})
	if st.Phase != Running || st.AgentEnded {
		t.Fatalf("%+v", st)
	}
	ok(t, h.RaiseSpool(t.Context(), 2_000_000))
	want, _ := io.ReadAll(io.LimitReader(stream(), 1_000_000))
	if got := output(t, h, 0); !bytes.Equal(got, want) {
		t.Fatalf("%d bytes", len(got))
	}
	if st := done(t, h); st.Exit.Code != 0 || st.Exit.CutBytes != 0 {
		t.Fatalf("%+v", st.Exit)
	}
}

// TestSpoolFullEnded: what found no place is counted, not hidden.
func TestSpoolFullEnded(t *testing.T) {
	spec := agent(t, "bytes", "1000000")
	spec.SpoolMax = 100_000
	h := start(t, t.TempDir(), spec)
	until(t, "the spool is full", func() bool {
		st, err := h.Status(t.Context())
		return err == nil && st.SpoolFull
	})
	ok(t, h.End(t.Context(), 0))
	st := done(t, h)
	if st.SpoolBytes != 100_000 || st.Exit.CutBytes == 0 {
		t.Fatalf("%+v %+v", st, st.Exit)
	}
}

// TestPTY: the agent has a terminal, and its output is spooled all the same.
func TestPTY(t *testing.T) {
	spec := agent(t)
	spec.Argv, spec.PTY, spec.KeepStdin = []string{"/bin/sh", "-c", "tty; read x; echo got $x; cat"}, true, true
	h := start(t, t.TempDir(), spec)
	ok(t, h.Send(t.Context(), 0, []byte("hello\n")))
	ok(t, h.CloseInput(t.Context()))
	st := done(t, h)
	got := string(output(t, h, 0))
	if !strings.Contains(got, "/dev/pts/") || !strings.Contains(got, "got hello\r\n") || st.Exit.Code != 0 {
		t.Fatalf("%q %+v", got, st.Exit)
	}
}

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
			} else if !errors.As(err, new(*AlreadyStarted)) {
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
		case <-time.After(10 * time.Second):
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
	if _, _, err := Adopt(ctx, dir, 5); !errors.As(err, &fenced) {
		t.Fatal("the fence was forgotten with the holder: ", err)
	}
	if err := h.Ack(ctx); err == nil {
		t.Fatal("a fenced daemon acknowledged")
	}
}

// TestFenceBeforeStart: a start that is under way when a new daemon looks cannot succeed behind its back.
func TestFenceBeforeStart(t *testing.T) {
	dir := t.TempDir()
	h, st, err := Adopt(t.Context(), dir, 7)
	if err != nil || st.Phase != NeverStarted {
		t.Fatalf("%+v %v", st, err)
	}
	defer h.Close()
	<-h.Done()
	if _, err := Start(t.Context(), dir, agent(t, "hang")); !errors.As(err, new(*Fenced)) {
		t.Fatal(err)
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
			spec.Argv, spec.Dir = c.argv, c.dir
			for range 2 { // the second time from the record
				var cannot *CannotStart
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
		if _, err := Start(t.Context(), dir, agent(t, "hang")); !errors.As(err, new(*AlreadyStarted)) {
			t.Fatal(err)
		}
		_, st, err := Adopt(t.Context(), dir, 1)
		if err != nil || st.Phase != Lost || !strings.Contains(st.Why, "damaged") {
			t.Fatalf("%+v %v", st, err)
		}
	})
}

// TestRuntimeDir: a runtime folder that somebody else prepared is not used.
func TestRuntimeDir(t *testing.T) {
	dir := t.TempDir()
	ok(t, os.Symlink(t.TempDir(), filepath.Join(dir, "link")))
	if err := safeDir(filepath.Join(dir, "link")); err == nil || !strings.Contains(err.Error(), "link") {
		t.Fatal(err)
	}
	ok(t, os.Mkdir(filepath.Join(dir, "open"), 0o777))
	ok(t, safeDir(filepath.Join(dir, "open")))
	if info, err := os.Stat(filepath.Join(dir, "open")); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("%v %v", info, err)
	}
	if os.Getuid() == 0 {
		ok(t, os.Mkdir(filepath.Join(dir, "foreign"), 0o700))
		ok(t, os.Chown(filepath.Join(dir, "foreign"), 12345, 12345))
		if err := safeDir(filepath.Join(dir, "foreign")); err == nil || !strings.Contains(err.Error(), "another user") {
			t.Fatal(err)
		}
	}
}

// TestCancelledStart: a start that was given up leaves a folder that can be adopted.
func TestCancelledStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if _, err := Start(ctx, dir, agent(t, "hang")); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	h, st, err := Adopt(t.Context(), dir, 2)
	ok(t, err)
	defer h.Close()
	if st.Phase == Running {
		ok(t, h.End(t.Context(), 0))
		done(t, h)
	}
	noSurvivor(t, dir)
}

// TestReconnect: a connection that breaks while the holder lives is made again, unseen.
func TestReconnect(t *testing.T) {
	spec := agent(t, "cat")
	spec.KeepStdin = true
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

// BenchmarkDone measures from the agent's SIGKILL to Done: everything in between
// is synced, the exit record included.
func BenchmarkDone(b *testing.B) {
	var worst, sum time.Duration
	n := 0
	for b.Loop() {
		b.StopTimer()
		h, err := Start(b.Context(), b.TempDir(), agent(b, "hang"))
		ok(b, err)
		lines(b, h, 1)
		st, err := h.Status(b.Context())
		ok(b, err)
		b.StartTimer()
		began := time.Now()
		ok(b, syscall.Kill(st.AgentPID, syscall.SIGKILL))
		<-h.Done()
		took := time.Since(began)
		worst, sum, n = max(worst, took), sum+took, n+1
		b.StopTimer()
		h.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
	b.ReportMetric(float64(sum.Microseconds())/1000/float64(n), "mean-ms")
}

// BenchmarkStart measures from Start to its return: two synced records, one exec of the holder, one of the agent.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		h, err := Start(b.Context(), b.TempDir(), agent(b, "hang"))
		ok(b, err)
		b.StopTimer()
		ok(b, h.End(b.Context(), 0))
		<-h.Done()
		h.Close()
		b.StartTimer()
	}
}

// BenchmarkOutput measures how fast output is spooled, synced and read back.
func BenchmarkOutput(b *testing.B) {
	const bytes = 64 << 20
	b.SetBytes(bytes)
	for b.Loop() {
		h, err := Start(b.Context(), b.TempDir(), agent(b, "bytes", "67108864"))
		ok(b, err)
		r, err := h.Output(b.Context(), 0)
		ok(b, err)
		if n, err := io.Copy(io.Discard, r); n != bytes || err != nil {
			b.Fatal(n, err)
		}
		r.Close()
		h.Close()
	}
}
