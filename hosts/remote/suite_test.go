package remote_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// TestHosts runs the same suite on this machine's shims, and on those of another host.
func TestHosts(t *testing.T) {
	t.Parallel()
	for name, newHost := range map[string]func(t *testing.T) sessionhost.Host{
		"here": func(t *testing.T) sessionhost.Host {
			return &sessions.Shims{Folder: t.TempDir(), Workspace: t.TempDir()}
		},
		"on another host":  func(t *testing.T) sessionhost.Host { return newWorld(t) },
		"over bad network": func(t *testing.T) sessionhost.Host { return newWorld(t).breaksAtRandom(seedOf(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			t.Run("conversation", func(t *testing.T) { conversation(t, h) })
			t.Run("exits", func(t *testing.T) { exits(t, h) })
			t.Run("starts once", func(t *testing.T) { startsOnce(t, h) })
			t.Run("cannot start", func(t *testing.T) { cannotStart(t, h) })
			t.Run("never started", func(t *testing.T) { neverStarted(t, h) })
			t.Run("taken over", func(t *testing.T) { takenOver(t, h) })
			if left, err := h.Sweep(t.Context()); err != nil || len(left) > 0 {
				t.Error(left, err)
			}
		})
	}
}

// begin starts a session, as the controllers do.
func begin(t testing.TB, h sessionhost.Host, session string, epoch uint64, l spawn.Launch) sessionhost.Process {
	t.Helper()
	p, err := h.Start(t.Context(), session, epoch, l, time.Second)
	if _, before := errors.AsType[*spawn.AlreadyStarted](err); before {
		p, _, err = h.Adopt(t.Context(), session, epoch)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// listens begins a session that reads its input, and follows its output.
func listens(t *testing.T, h sessionhost.Host, session, script string) (spawn.Launch, sessionhost.Process, io.ReadCloser) {
	t.Helper()
	l := shell(script)
	l.KeepStdin = true
	p := begin(t, h, session, 1, l)
	out := must[io.ReadCloser](t)(p.Output(t.Context(), 0))
	t.Cleanup(func() { out.Close() })
	return l, p, out
}

// acked acknowledges an end. Each time asks for a bounded while, and a network may break all requests of one.
func acked(t *testing.T, p sessionhost.Process) error {
	for {
		if err := p.Ack(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

func conversation(t *testing.T, h sessionhost.Host) {
	l := shell("while read line; do echo \"heard $line\"; done; echo bye; exit 3")
	l.Input, l.KeepStdin = []byte("first\n"), true
	p := begin(t, h, "coder-1", 1, l)
	out := must[io.ReadCloser](t)(p.Output(t.Context(), 0))
	defer out.Close()
	if line := readLine(t, out); line != "heard first\n" {
		t.Fatal(line)
	}
	typist := p.(sessionhost.InputWriter)
	if err := typist.SendAs(t.Context(), "a1", []byte("second\n")); err != nil {
		t.Fatal(err)
	}
	if err := p.Send(t.Context(), []byte("third\n")); err != nil {
		t.Fatal(err)
	}
	if offset, label := typist.Input(); offset != int64(len("first\nsecond\nthird\n")) || label != "a1" {
		t.Error(offset, label)
	}
	again, found, err := h.Adopt(t.Context(), "coder-1", 1)
	if err != nil || found != sessionhost.Running || again.PID() != p.PID() || p.PID() == 0 {
		t.Fatal(found, err)
	}
	if offset, label := again.(sessionhost.InputWriter).Input(); offset != int64(len("first\nsecond\nthird\n")) || label != "a1" {
		t.Error(offset, label)
	}
	_ = again.Close()
	if proof, err := p.Evidence(t.Context()); err != nil || proof.PID != p.PID() || proof.Against != "" || len(proof.Holds) == 0 {
		t.Error(proof, err)
	}
	select {
	case <-p.Done():
		t.Fatal("it has ended")
	default:
	}
	if err := p.CloseInput(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	end, err := p.Ended(t.Context())
	if err != nil || end.Lost || end.Code != 3 || end.At.IsZero() {
		t.Fatalf("%+v %v", end, err)
	}
	const said = "heard first\nheard second\nheard third\nbye\n"
	if text := must[[]byte](t)(io.ReadAll(out)); string(text) != strings.TrimPrefix(said, "heard first\n") {
		t.Errorf("%q", text)
	}
	if err := typist.SendAs(t.Context(), "a2", []byte("more\n")); !errors.Is(err, driver.ErrNoInput) {
		t.Error(err)
	}
	if err := p.End(t.Context(), 0); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := acked(t, p); err != nil {
			t.Error(err)
		}
	}
	if all, part := readAll(t, p, 0), readAll(t, hosts{h, "coder-1"}, 6); string(all) != said || string(part) != said[6:] ||
		end.SpoolBytes != int64(len(said)) {
		t.Errorf("%q %q %d", all, part, end.SpoolBytes)
	}
	late, found, err := h.Adopt(t.Context(), "coder-1", 1)
	if err != nil || found != sessionhost.Exited {
		t.Fatal(found, err)
	}
	if later, err := late.Ended(t.Context()); err != nil || later.Code != 3 || later.SpoolBytes != end.SpoolBytes {
		t.Error(later, err)
	}
	_ = late.Close()
}

func exits(t *testing.T, h sessionhost.Host) {
	p := begin(t, h, "coder-2", 1, shell("trap '' TERM; echo ready; while :; do read x </dev/zero; done"))
	out := must[io.ReadCloser](t)(p.Output(t.Context(), 0))
	defer out.Close()
	readLine(t, out)
	if err := p.End(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if end, err := p.Ended(t.Context()); err != nil || end.Signal != "SIGKILL" {
		t.Error(end, err)
	}
	if err := p.CloseInput(t.Context()); err != nil && !errors.Is(err, driver.ErrNoInput) && !strings.Contains(err.Error(), "ended") {
		t.Error(err)
	}
}

func startsOnce(t *testing.T, h sessionhost.Host) {
	file := t.TempDir() + "/began"
	l := shell("echo began >> " + file)
	p := begin(t, h, "coder-3", 1, l)
	for range 3 {
		_, err := h.Start(t.Context(), "coder-3", 1, l, time.Second)
		if before, is := errors.AsType[*spawn.AlreadyStarted](err); !is || before.Session != "coder-3" {
			t.Error(err)
		}
	}
	<-p.Done()
	if n := strings.Count(readFile(t, file), "began"); n != 1 {
		t.Errorf("it began %d times", n)
	}
}

func cannotStart(t *testing.T, h sessionhost.Host) {
	for range 2 {
		_, err := h.Start(t.Context(), "coder-4", 1, spawn.Launch{Argv: []string{"/no/such/program"}, Dir: "/"}, time.Second)
		if no, is := errors.AsType[*spawn.CannotStart](err); !is || !strings.Contains(no.Why, "/no/such/program") {
			t.Error(err)
		}
	}
	if _, found, err := h.Adopt(t.Context(), "coder-4", 1); err != nil || found != sessionhost.NeverStarted {
		t.Error(found, err)
	}
}

func neverStarted(t *testing.T, h sessionhost.Host) {
	if _, found, err := h.Adopt(t.Context(), "build@r1-1", 1); err != nil || found != sessionhost.NeverStarted {
		t.Error(found, err)
	}
	if out, err := h.Output(t.Context(), "build@r1-1", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Error(out, err)
	}
}

func takenOver(t *testing.T, h sessionhost.Host) {
	_, p, out := listens(t, h, "coder-5", "echo ready; read line; echo \"$line\"")
	readLine(t, out)
	next, found, err := h.Adopt(t.Context(), "coder-5", 2)
	if err != nil || found != sessionhost.Running {
		t.Fatal(found, err)
	}
	defer next.Close()
	if err := p.Send(t.Context(), []byte("old\n")); !isFenced(err) {
		t.Error(err)
	}
	<-p.Done()
	if _, err := p.Ended(t.Context()); !isFenced(err) {
		t.Error(err)
	}
	if _, _, err := h.Adopt(t.Context(), "coder-5", 1); !isFenced(err) {
		t.Error(err)
	}
	if text, err := io.ReadAll(out); len(text) > 0 || err == nil {
		t.Errorf("%q %v", text, err)
	}
	if err := next.Send(t.Context(), []byte("new\n")); err != nil {
		t.Error(err)
	}
	if text := string(readAll(t, next, 0)); text != "ready\nnew\n" {
		t.Errorf("%q", text)
	}
}
