package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/hosts/remote"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// seedOf is another seed at each run; FAIRLEAD_SEED repeats one.
func seedOf(t testing.TB) uint64 {
	if text := os.Getenv("FAIRLEAD_SEED"); text != "" {
		var seed uint64
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatal(err)
		}
		return seed
	}
	sum := fnv.New64a()
	fmt.Fprint(sum, t.Name(), time.Now().UnixNano())
	return sum.Sum64()
}

func isFenced(err error) bool {
	_, is := errors.AsType[*sessionhost.Fenced](err)
	return is
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	return string(must[[]byte](t)(os.ReadFile(path)))
}

// hosts is the output of one session.
type hosts struct {
	sessionhost.Host
	session string
}

func (h hosts) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	return h.Host.Output(ctx, h.session, offset)
}

// Whatever breaks, the agent reads each input once, in order, and all of its output arrives once.
func TestInputIsNeverDoubled(t *testing.T) {
	t.Parallel()
	for range 3 {
		w := newWorld(t)
		w.breaksAtRandom(seedOf(t))
		file := filepath.Join(t.TempDir(), "in")
		l := shell("tee " + file)
		l.KeepStdin = true
		p := begin(t, w, "coder-1", 1, l)
		var want strings.Builder
		for i := range 40 {
			line := fmt.Sprintf("input %d %s\n", i, strings.Repeat("x", i*i*10))
			want.WriteString(line)
			if err := p.(sessionhost.InputWriter).SendAs(t.Context(), fmt.Sprint("label-", i), []byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.CloseInput(t.Context()); err != nil {
			t.Fatal(err)
		}
		if end, err := p.Ended(t.Context()); err != nil || end.Lost || end.Code != 0 {
			t.Fatal(end, err)
		}
		if got := readFile(t, file); got != want.String() {
			t.Errorf("the agent read %d bytes, not %d", len(got), want.Len())
		}
		if got := readAll(t, p, 0); string(got) != want.String() {
			t.Errorf("the leader read %d bytes, not %d", len(got), want.Len())
		}
	}
}

// An input whose caller left is sent nevertheless, before the next one.
func TestInputOfACallerThatLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := shell("cat")
	l.KeepStdin = true
	p := begin(t, w, "coder-1", 1, l)
	ctx, leave := context.WithCancel(t.Context())
	w.mu.Lock()
	w.breaks = func(r *http.Request) breakage {
		if filepath.Base(r.URL.Path) == "input" && ctx.Err() == nil {
			leave()
			return breaksAfter
		}
		return breaksNot
	}
	w.mu.Unlock()
	if err := p.Send(ctx, []byte("first\n")); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := p.Send(t.Context(), []byte("a longer second\n")); err != nil {
		t.Fatal(err)
	}
	if err := p.CloseInput(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := string(readAll(t, p, 0)); got != "first\na longer second\n" {
		t.Errorf("%q", got)
	}
}

func TestLongOutputOverBreaks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.breaksAtRandom(seedOf(t))
	file := filepath.Join(t.TempDir(), "out")
	var want bytes.Buffer
	for i := 0; want.Len() < 10<<20; i++ {
		fmt.Fprintf(&want, "%d %x\n", i, i*i)
	}
	if err := os.WriteFile(file, want.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p := begin(t, w, "coder-1", 1, shell("cat "+file))
	if got := readAll(t, p, 0); !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%d bytes arrived, of %d, or they differ", len(got), want.Len())
	}
	if end, err := p.Ended(t.Context()); err != nil || end.SpoolBytes != int64(want.Len()) {
		t.Error(end, err)
	}
	if got := readAll(t, hosts{w, "coder-1"}, 1000); !bytes.Equal(got, want.Bytes()[1000:]) {
		t.Errorf("%d bytes arrived, of %d, or they differ", len(got), want.Len()-1000)
	}
}

// The daemon of a host ends and comes back. What follows its sessions sees only that time passes.
func TestHostComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, p, out := listens(t, w, "coder-1", "while read line; do echo \"heard $line\"; done")
	for i := range 3 {
		if err := p.Send(t.Context(), fmt.Appendf(nil, "line %d\n", i)); err != nil {
			t.Fatal(err)
		}
		if line := readLine(t, out); line != fmt.Sprintf("heard line %d\n", i) {
			t.Fatal(line)
		}
		w.stop()
		sent := make(chan error, 1)
		go func() { sent <- p.Send(t.Context(), fmt.Appendf(nil, "away %d\n", i)) }()
		w.start()
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if line := readLine(t, out); line != fmt.Sprintf("heard away %d\n", i) {
			t.Fatal(line)
		}
	}
	w.stop()
	if known := w.daemon.Known(); len(known) != 0 {
		t.Error(known)
	}
	w.start()
	known := w.daemon.Known()
	if len(known) != 1 ||
		known[0] != (host.Local{
			Token: host.Token{Session: "coder-1", Host: "b", Incarnation: 1, N: 1}, Shim: true, Began: true,
			Used: true,
		}) {
		t.Error("the daemon did not take its session up:", known)
	}
	if err := w.daemon.End(t.Context(), "coder-1"); err != nil {
		t.Fatal(err)
	}
	if end, err := p.Ended(t.Context()); err != nil || end.Lost || end.Signal != "SIGTERM" {
		t.Errorf("%+v %v", end, err)
	}
	if text, err := io.ReadAll(out); err != nil || len(text) > 0 {
		t.Errorf("%q %v", text, err)
	}
}

func TestHostIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, p, out := listens(t, w, "coder-1", "echo ready; cat")
	readLine(t, out)
	w.stop()
	sent, started := make(chan error, 1), make(chan error, 1)
	go func() { sent <- p.Send(t.Context(), []byte("x")) }()
	go func() {
		_, err := w.Start(t.Context(), "coder-2", 1, l, time.Second)
		started <- err
	}()
	close(w.gone)
	if end, err := p.Ended(t.Context()); err != nil || end != (session.Exit{Lost: true, Why: "host b was lost"}) {
		t.Errorf("%+v %v", end, err)
	}
	<-p.Done()
	if err := <-sent; !errors.Is(err, driver.ErrNoInput) {
		t.Error(err)
	}
	if err := <-started; !isLost(err) {
		t.Error(err)
	}
	if text, err := io.ReadAll(out); err != nil || len(text) > 0 {
		t.Errorf("%q %v", text, err)
	}
	if text := readAll(t, p, 0); len(text) > 0 {
		t.Errorf("%q", text)
	}
	if err := errors.Join(p.End(t.Context(), 0), p.CloseInput(t.Context()), p.Ack(t.Context())); err != nil {
		t.Error(err)
	}
	if _, err := p.Evidence(t.Context()); !isLost(err) {
		t.Error(err)
	}
	late, found, err := w.Adopt(t.Context(), "coder-1", 2)
	if err != nil || found != sessionhost.Lost {
		t.Fatal(found, err)
	}
	if end, err := late.Ended(t.Context()); err != nil || !end.Lost {
		t.Error(end, err)
	}
	_ = late.Close()
	w.start()
}

// What is in the middle of a request ends, too, when its host is lost: that may be known before the connection breaks.
func TestHostIsGoneMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := begin(t, w, "coder-1", 1, shell("echo ready; exec sleep 600"))
	out := must[io.ReadCloser](t)(p.Output(t.Context(), 0))
	defer out.Close()
	readLine(t, out)
	held, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	w.guard.refuses = errors.New("the host is lost")
	w.guard.holds = func() {
		close(held)
		<-release
	}
	started := make(chan error, 1)
	go func() {
		_, err := w.Start(t.Context(), "coder-2", 1, shell("exit 0"), time.Second)
		started <- err
	}()
	<-held
	close(w.gone)
	if err := <-started; !isLost(err) {
		t.Error(err)
	}
	if text, err := io.ReadAll(out); err != nil || len(text) > 0 {
		t.Errorf("%q %v", text, err)
	}
	if end, err := p.Ended(t.Context()); err != nil || !end.Lost {
		t.Error(end, err)
	}
}

// The answer of a start breaks off while the host still asks its leader. The start goes on, and is found.
func TestStartGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	w.guard.holds = func() {
		leave()
		<-left
	}
	_, err := w.Start(ctx, "coder-1", 1, shell("echo began"), time.Second)
	close(left)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	p, found, err := w.Adopt(t.Context(), "coder-1", 1) // behind the start
	if err != nil || found == sessionhost.NeverStarted {
		t.Fatal(found, err)
	}
	defer p.Close()
	if text := string(readAll(t, p, 0)); text != "began\n" {
		t.Errorf("%q", text)
	}
}

func isLost(err error) bool {
	_, is := errors.AsType[*remote.Lost](err)
	return is
}

// A session that has ended is released, and its end stays what it was.
func TestReleasedAfterItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := begin(t, w, "coder-1", 1, shell("echo done; exit 4"))
	if end, err := p.Ended(t.Context()); err != nil || end.Code != 4 {
		t.Fatal(end, err)
	}
	close(w.gone)
	if err := p.Ack(t.Context()); err != nil {
		t.Error(err)
	}
	wait.Until(t, "its output can be read", func() bool { return string(readAll(t, p, 0)) == "done\n" }) // the host is asked once each time
	w.stop()
	if _, err := p.Evidence(t.Context()); !isLost(err) {
		t.Error(err)
	}
	if end, err := p.Ended(t.Context()); err != nil || end.Code != 4 {
		t.Error(end, err)
	}
	w.start()
}

// How a session has ended is known under its own lease only, also when the host is back and the session is released.
func TestEndedLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begin(t, w, "coder-1", 1, shell("exit 4"))
	close(w.gone)
	token := host.Token{Session: "coder-1", Host: "b", Incarnation: 1, N: 1}
	if end, err := w.leader.EndedLate(t.Context(), token, 1); err != nil || end.Code != 4 {
		t.Error(end, err)
	}
	for _, other := range []host.Token{
		{Session: "coder-1", Host: "b", Incarnation: 2, N: 1},
		{Session: "coder-1", Host: "b", Incarnation: 1, N: 2},
		{Session: "coder-2", Host: "b", Incarnation: 1, N: 1},
	} {
		_, err := w.leader.EndedLate(t.Context(), other, 1)
		if p, is := errors.AsType[*wire.Problem](err); !is || p.Code != wire.NotHere {
			t.Errorf("%+v: %v", other, err)
		}
	}
	for range 2 {
		if err := w.leader.Forget(t.Context(), "coder-1", 1); err != nil {
			t.Error(err)
		}
	}
}

// A process that is not followed any longer runs on; a caller that leaves is not held up.
func TestCloseAndLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, p, out := listens(t, w, "coder-1", "cat")
	read := make(chan error, 1)
	go func() {
		_, err := out.Read(make([]byte, 1))
		read <- err
	}()
	if err := out.Close(); err != nil {
		t.Error(err)
	}
	if err := <-read; err == nil {
		t.Error("a closed output was read")
	}
	w.stop()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := p.Ended(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := p.Evidence(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, _, err := w.Adopt(ctx, "coder-1", 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := w.Output(ctx, "coder-1", 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_ = p.Close()
	if _, err := p.Ended(t.Context()); err == nil {
		t.Error("it has not ended")
	}
	w.start()
	next, found, err := w.Adopt(t.Context(), "coder-1", 1)
	if err != nil || found != sessionhost.Running {
		t.Fatal(found, err)
	}
	defer next.Close()
	if err := next.CloseInput(t.Context()); err != nil {
		t.Error(err)
	}
	if end, err := next.Ended(t.Context()); err != nil || end.Code != 0 {
		t.Error(end, err)
	}
}

func TestRefusedStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.guard.refuses = errors.New("the leader did not answer within 5 seconds")
	_, err := w.Start(t.Context(), "coder-1", 1, shell("exit 0"), time.Second)
	if err == nil || err.Error() != "the leader did not answer within 5 seconds" {
		t.Error(err)
	}
	if _, found, err := w.Adopt(t.Context(), "coder-1", 1); err != nil || found != sessionhost.NeverStarted {
		t.Error(found, err)
	}
	if left, _ := os.ReadDir(filepath.Join(w.dir, "sessions")); len(left) > 0 {
		t.Error("it has a folder:", left)
	}
	w.guard.refuses = nil
	p := begin(t, w, "coder-1", 1, shell("exit 0"))
	if end, err := p.Ended(t.Context()); err != nil || end.Code != 0 {
		t.Error(end, err)
	}
	in := startIn("coder-1", 1, shell("exit 0"), 0)
	if w.guard.asked != 2 {
		t.Errorf("the leader was asked %d times", w.guard.asked) // not for a session that began
	}
	in.Launch.Input = make([]byte, wire.BodyMax)
	_, err = w.leader.StartOn(t.Context(), in, "coder-1")
	if no, is := errors.AsType[*spawn.CannotStart](err); !is || !strings.Contains(no.Why, "at most") {
		t.Error(err)
	}
	if err := p.Send(t.Context(), make([]byte, wire.BodyMax)); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Error(err)
	}
}

// The record of a session is gone from its host: nothing else can say how it ended.
func TestNoRecordOnTheHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := begin(t, w, "coder-1", 1, shell("exit 0"))
	if _, err := p.Ended(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = p.Close()
	w.mu.Lock()
	w.breaks = func(r *http.Request) breakage {
		if filepath.Base(r.URL.Path) == "ended" {
			return breaksBefore
		}
		return breaksNot
	}
	w.mu.Unlock()
	late, _, err := w.Adopt(t.Context(), "coder-1", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	w.stop()
	if err := os.Rename(filepath.Join(w.dir, "sessions", "coder-1"), filepath.Join(w.dir, "aside")); err != nil {
		t.Fatal(err)
	}
	w.start()
	if err := late.Ack(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	w.mu.Lock()
	w.breaks = nil
	w.mu.Unlock()
	if end, err := late.Ended(t.Context()); err != nil || !end.Lost || end.Why != "host b has no record of it" {
		t.Error(end, err)
	}
}
