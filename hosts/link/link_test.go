package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// echo answers with what it was sent, and by whom.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(w, "%s from %s: %s", r.URL.Path, HostOf(r.Context()), body)
}

func TestBothDirections(t *testing.T) {
	t.Parallel()
	h, c := newTeam(t, "web").pair(http.HandlerFunc(echo), http.HandlerFunc(echo))
	if got := text(t, c.Client, "/up", "hello"); got != "/up from b: hello" {
		t.Error(got)
	}
	if got := text(t, toB(t, h), "/down", "hi"); got != "/down from a: hi" {
		t.Error(got)
	}
	if h.Address() == "" || HostOf(t.Context()) != "" {
		t.Error(h.Address())
	}
	var away *Away
	if _, _, err := h.Client("c"); !errors.As(err, &away) || away.Name != "c" || !strings.Contains(err.Error(), "host c is not connected") {
		t.Error(err)
	}
}

// blocks is a body of 64 MiB that notes how far ahead of its reader it was.
type blocks struct {
	written, read, ahead atomic.Int64
}

const bodyLen = 64 << 20

func (b *blocks) Read(p []byte) (int, error) {
	n := min(int64(len(p)), bodyLen-b.written.Load())
	if n == 0 {
		return 0, io.EOF
	}
	b.ahead.Store(max(b.ahead.Load(), b.written.Add(n)-b.read.Load()))
	return int(n), nil
}

// drink reads slowly: it lets the writer be ahead first. Without a limit that would be far.
func (b *blocks) drink(from io.Reader) error {
	p := make([]byte, 32<<10)
	for {
		if done := b.read.Load(); !wait.Poll(func() bool { return b.written.Load() >= min(done+windowMax/2, bodyLen) }) {
			return errors.New("the writer does not go on")
		}
		n, err := from.Read(p)
		b.read.Add(int64(n))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (b *blocks) check(t *testing.T, err error) {
	t.Helper()
	if most := int64(2 * windowMax); err != nil || b.read.Load() != bodyLen || b.ahead.Load() > most {
		t.Errorf("%d of %d bytes were read, the writer was %d ahead, at most %d is good: %v", b.read.Load(), bodyLen, b.ahead.Load(), most,
			err)
	}
	t.Logf("the writer was %d bytes ahead", b.ahead.Load())
}

func TestSlowReader(t *testing.T) {
	t.Parallel()
	for _, direction := range []string{"to the host", "to the leader"} {
		t.Run(direction+", request", func(t *testing.T) {
			t.Parallel()
			var b blocks
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := b.drink(r.Body); err != nil {
					http.Error(w, err.Error(), http.StatusInternalServerError)
				}
			})
			h, c := newTeam(t, "web").pair(handler, handler)
			to := c.Client
			if direction == "to the host" {
				to = toB(t, h)
			}
			answer, err := ask(t.Context(), to, "/", &b)
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
			b.check(t, err)
		})
		t.Run(direction+", answer", func(t *testing.T) {
			t.Parallel()
			var b blocks
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, &b) })
			h, c := newTeam(t, "web").pair(handler, handler)
			to := toB(t, h)
			if direction == "to the host" {
				to = c.Client
			}
			answer, err := ask(t.Context(), to, "/", nil)
			if err == nil {
				err = b.drink(answer.Body)
				answer.Body.Close()
			}
			b.check(t, err)
		})
	}
}

// hanging is a handler that reports its beginning and the end of its request.
type hanging struct{ begun, ended chan struct{} }

func newHanging() *hanging { return &hanging{make(chan struct{}, 1), make(chan struct{}, 1)} }

func (g *hanging) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).Flush()
	g.begun <- struct{}{}
	<-r.Context().Done()
	g.ended <- struct{}{}
}

// hang sends a request that is not answered, and returns its error later.
func (g *hanging) hang(ctx context.Context, t *testing.T, to asker) <-chan error {
	t.Helper()
	failed := make(chan error, 1)
	go func() {
		answer, err := ask(ctx, to, "/", nil)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		failed <- err
	}()
	wait.For(t, "the beginning of the request", g.begun)
	return failed
}

func TestCancel(t *testing.T) {
	t.Parallel()
	up, down := newHanging(), newHanging()
	h, c := newTeam(t, "web").pair(up, down)
	for name, of := range map[string]struct {
		*hanging
		to asker
	}{"leader": {up, c.Client}, "host": {down, toB(t, h)}} {
		ctx, cancel := context.WithCancel(t.Context())
		failed := of.hang(ctx, t, of.to)
		cancel()
		wait.For(t, "the end of the request at the "+name, of.ended)
		if err := wait.For(t, "its error", failed); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCut cuts a connection in the middle of requests, in several ways. Both ends notice, and end the requests of the other.
func TestCut(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*proxy, *Hub, *Conn){
		"packets are lost":    func(p *proxy, _ *Hub, _ *Conn) { p.stop() },
		"reset":               func(p *proxy, _ *Hub, _ *Conn) { p.reset() },
		"the leader ends":     func(_ *proxy, h *Hub, _ *Conn) { h.Close() },
		"the host ends":       func(_ *proxy, _ *Hub, c *Conn) { c.Close() },
		"the host is removed": func(_ *proxy, h *Hub, _ *Conn) { h.o.Members.(*team).remove("b"); h.Recheck() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newTeam(t, "web")
			up, down := newHanging(), newHanging()
			changes := make(chan bool, 9)
			o := Options{Handler: up, Changed: func(name string, up bool) { changes <- up }, ping: quiet}
			options := f.options(f.join("b", cluster.Host), "", down)
			if name == "packets are lost" {
				o.ping, options.ping = 0, 0
			}
			h := f.listen(o)
			p := newProxy(t, h.Address())
			options.Addresses = func() []string { return []string{p.Addr().String()} }
			c, err := Dial(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			f.await(h)
			if !wait.For(t, "the report of the connection", changes) {
				t.Error("it is down")
			}
			ups, downs := up.hang(t.Context(), t, c.Client), down.hang(t.Context(), t, toB(t, h))
			cut(p, h, c)
			wait.For(t, "the end of the connection at the host", c.Done())
			if wait.For(t, "the report of its end", changes) {
				t.Error("it is up")
			}
			for what, failed := range map[string]<-chan error{"the host's request": ups, "the leader's request": downs} {
				if err := wait.For(t, what, failed); err == nil {
					t.Errorf("%s has no error", what)
				}
			}
			wait.For(t, "the end of the request at the leader", up.ended)
			wait.For(t, "the end of the request at the host", down.ended)
			if _, _, err := h.Client("b"); err == nil {
				t.Error("the leader has a connection")
			}
		})
	}
}

func TestSecondConnection(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	changes := make(chan bool, 9)
	h := f.listen(Options{ping: quiet, Handler: http.HandlerFunc(echo), Changed: func(name string, up bool) { changes <- up }})
	id := f.join("b", cluster.Host)
	answer := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
	}
	first := f.dial(id, h.Address(), answer("first"))
	wait.For(t, "the first connection", changes)
	if got := text(t, toB(t, h), "/", ""); got != "first" {
		t.Error(got)
	}
	second := f.dial(id, h.Address(), answer("second"))
	wait.For(t, "the end of the first connection", first.Done())
	for range 2 { // the second begins, the first ends
		if !wait.For(t, "a report", changes) {
			t.Error("the host is reported as down")
		}
	}
	if got := text(t, toB(t, h), "/", ""); got != "second" {
		t.Error(got)
	}
	if got := text(t, second.Client, "/x", ""); got != "/x from b: " {
		t.Error(got)
	}
	wait.Until(t, "two connections at the leader", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return len(h.all) == 2 })
}

func TestKeep(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	leader, id := f.join("a", cluster.Engine), f.join("b", cluster.Host)
	h := f.listen(Options{Identity: leader, ping: quiet})
	p := newProxy(t, h.Address())
	ups := make(chan *Conn, 9)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	keep := func() { ended <- Keep(ctx, f.options(id, p.Addr().String(), nil), func(c *Conn) { ups <- c }) }
	go keep()
	wait.For(t, "the first connection", ups)
	p.reset()
	wait.For(t, "the second connection", ups)
	f.await(h)
	cancel()
	if err := wait.For(t, "the end of Keep", ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	ctx = t.Context()
	go keep()
	wait.For(t, "the third connection", ups)
	f.remove("b")
	h.Recheck()
	var refused *Refused
	err := wait.For(t, "the end of Keep", ended)
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "was removed, or has left; to come back, it needs a new invitation") {
		t.Error(err)
	}
	short, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	var away *Away
	if err := h.Await(short, "b"); !errors.As(err, &away) {
		t.Error(err)
	}
	h.Close()
	if err := h.Await(t.Context(), "b"); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

// Of three engine hosts one is paused: the system takes connections for it, and it says nothing. Another one does not run. The
// leader is found although the paused one is not given up yet.
func TestDialBesidePaused(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	h := f.listen(Options{ping: quiet})
	paused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer paused.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	o := f.options(f.join("b", cluster.Host), "", nil)
	o.Addresses = func() []string { return []string{paused.Addr().String(), gone.Addr().String(), h.Address()} }
	o.others, o.greet = wait.Patience*2, wait.Patience*2
	ctx, cancel := context.WithTimeout(t.Context(), wait.Patience)
	defer cancel()
	c, err := Dial(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f.await(h)
	o.Addresses = func() []string { return []string{gone.Addr().String(), gone.Addr().String()} }
	if _, err := Dial(ctx, o); err == nil || strings.Count(err.Error(), "no program listens there") != 2 {
		t.Errorf("without a leader: %v", err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	long := strings.Repeat("x", 2*headerMax)
	h, c := f.pair(http.HandlerFunc(echo), nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a/", nil)
	if err != nil {
		t.Fatal(err)
	}
	text(t, c.Client, "/", "") // the leader has said what it takes
	r.Header.Set("Long", long)
	client, _ := c.Client()
	if answer, err := client.Do(r); err == nil {
		answer.Body.Close()
		if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Error(answer.Status)
		}
	}

	s, _ := h.sender("b")
	wait.Until(t, "what the host takes", func() bool { return s.Available() == requestsMax })
	for range requestsMax {
		if err := s.Reserve(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ask(t.Context(), toB(t, h), "/", nil); err == nil ||
		!strings.Contains(err.Error(), "1024 requests to b are running, which is the limit") {
		t.Error(err)
	}

	h.mu.Lock()
	for i := range hostsMax - 1 {
		h.all[&pipe{peer: fmt.Sprint(i)}] = cluster.Member{}
	}
	h.mu.Unlock()
	id := f.join("c", cluster.Host)
	if _, err := Dial(t.Context(), f.options(id, h.Address(), nil)); err == nil ||
		!strings.Contains(err.Error(), "256 hosts are connected to the leader, which is the limit") {
		t.Error(err)
	}
	h.mu.Lock()
	for p := range h.all {
		if p.Conn == nil {
			delete(h.all, p)
		}
	}
	h.mu.Unlock()
	f.dial(id, h.Address(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Long", long) }))
	if err := h.Await(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	client, base, err := h.Client("c")
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := client.Get(base); err == nil { // it ends the connection, too
		answer.Body.Close()
		t.Errorf("a header of %d bytes is taken", len(answer.Header.Get("Long")))
	}
}

// An end may refuse further requests on a connection. The connection ends then, so that the host makes a new one.
func TestNoMoreRequests(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	g := newHanging()
	h, c := f.pair(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/last" {
			w.Header().Set("Connection", "close")
			return
		}
		g.ServeHTTP(w, r)
	}), nil)
	failed := g.hang(t.Context(), t, c.Client)
	text(t, c.Client, "/last", "")
	wait.Until(t, "an error that says that the leader is away", func() bool {
		answer, err := ask(t.Context(), c.Client, "/last", nil)
		if err == nil {
			answer.Body.Close()
		}
		var away *Away
		return errors.As(err, &away)
	})
	wait.For(t, "the end of the connection", c.Done())
	if err := wait.For(t, "the end of the request that was running", failed); err == nil {
		t.Error("it has no error")
	}
	wait.Until(t, "the end at the leader", func() bool { s, _ := h.sender("b"); return s == nil })
}

// One of the two connections ends, and the other one with it.
func TestHalfEnds(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{toHost, toLeader} {
		h, c := newTeam(t, "web").pair(nil, nil)
		var half *pipe
		wait.Until(t, "both connections", func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			half = h.newest[pipeOf{"b", kind}]
			return half != nil
		})
		half.end()
		wait.For(t, "the end at the host", c.Done())
		wait.Until(t, "the end of both at the leader", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return len(h.all) == 0 })
	}
}

// Close does not wait for a host that does not answer.
func TestCloseWithLostHost(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	h := f.listen(Options{ping: 24 * time.Hour})
	p := newProxy(t, h.Address())
	options := f.options(f.join("b", cluster.Host), p.Addr().String(), nil)
	options.ping = 24 * time.Hour
	c, err := Dial(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	f.await(h)
	p.stop()
	closed := make(chan error, 2)
	go func() { closed <- h.Close() }()
	go func() { closed <- c.Close() }()
	for range 2 {
		if err := wait.For(t, "the end", closed); err != nil {
			t.Error(err)
		}
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	h := f.listen(Options{})
	if _, err := Listen(h.Address()); err == nil || !strings.Contains(err.Error(), "another program listens on this port") {
		t.Error(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:443")
	if err == nil {
		l.Close() // this user may
		return
	}
	if _, err := Listen("127.0.0.1:443"); err == nil || !strings.Contains(err.Error(), "choose") {
		t.Error(err)
	}
}
