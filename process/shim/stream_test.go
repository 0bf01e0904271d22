package shim

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
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
	spec.Launch.Input, spec.Launch.KeepStdin = []byte("first "), true
	h := start(t, t.TempDir(), spec)
	ctx := t.Context()
	ok(t, h.Send(ctx, 0, []byte("first second "))) // overlaps what the launch carried
	ok(t, h.Send(ctx, 6, []byte("second ")))       // all of it is there
	ok(t, h.SendAs(ctx, 6, "turn/2", []byte("second third")))
	var gap *InputGap
	if err := h.Send(ctx, 99, []byte("x")); !errors.As(err, &gap) || gap.Taken != 18 {
		t.Fatal(err)
	}
	st, err := h.Status(ctx)
	if err != nil || st.InputOffset != 18 || st.InputLabel != "turn/2" {
		t.Fatalf("%+v %v", st, err)
	}
	if err := h.SendAs(ctx, 99, "turn/3", []byte("x")); !errors.As(err, &gap) {
		t.Fatal(err)
	}
	if err := h.SendAs(ctx, 18, strings.Repeat("x", labelBytesMax+1), nil); err == nil {
		t.Fatal("a name without end is taken")
	}
	h2, st, err := Adopt(ctx, h.Folder(), 2) // the next daemon is not sure what arrived
	ok(t, err)
	defer h2.Close()
	if st.InputLabel != "turn/2" {
		t.Fatalf("what was sent last is called %q", st.InputLabel)
	}
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
	spec.Launch.KeepStdin = true
	h := start(t, t.TempDir(), spec)
	want, _ := io.ReadAll(io.LimitReader(stream(), 3<<20))
	ok(t, h.Send(t.Context(), 0, want))
	ok(t, h.CloseInput(t.Context()))
	if got := output(t, h, 0); !bytes.Equal(got, want) {
		t.Fatalf("%d bytes", len(got))
	}
	done(t, h)
}

// TestInputFull: an agent that does not read cannot fill the shim's memory.
func TestInputFull(t *testing.T) {
	spec := agent(t, "hang")
	spec.Launch.KeepStdin = true
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

// TestSpoolFull: at the limit the agent waits and the status says so.
func TestSpoolFull(t *testing.T) {
	spec := agent(t, "bytes", "1000000")
	spec.Launch.Limits.Output = 100_000
	h := start(t, t.TempDir(), spec)
	var st Status
	wait.Until(t, "the spool is full", func() bool {
		var err error
		st, err = h.Status(t.Context())
		return err == nil && st.SpoolFull && st.SpoolBytes == 100_000
	})
	if st.Phase != Running || st.AgentEnded {
		t.Fatalf("%+v", st)
	}
}

// TestSpoolFullEnded: what found no place is counted, not hidden.
func TestSpoolFullEnded(t *testing.T) {
	spec := agent(t, "bytes", "1000000")
	spec.Launch.Limits.Output = 100_000
	h := start(t, t.TempDir(), spec)
	wait.Until(t, "the spool is full", func() bool {
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
	spec.Launch.Argv, spec.PTY, spec.Launch.KeepStdin = []string{"/bin/sh", "-c", "tty; read x; echo got $x; cat"}, true, true
	h := start(t, t.TempDir(), spec)
	ok(t, h.Send(t.Context(), 0, []byte("hello\n")))
	ok(t, h.CloseInput(t.Context()))
	st := done(t, h)
	got := string(output(t, h, 0))
	if !strings.Contains(got, "/dev/pts/") || !strings.Contains(got, "got hello\r\n") || st.Exit.Code != 0 {
		t.Fatalf("%q %+v", got, st.Exit)
	}
}
