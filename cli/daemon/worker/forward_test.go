package worker

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/process/boottime"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// conn is a connection to a fake leader over HTTP/2.
type conn struct {
	*httptest.Server
	done chan struct{}
	once sync.Once
}

func (c *conn) Client() (*http.Client, string)                       { return c.Server.Client(), c.URL }
func (c *conn) Done() <-chan struct{}                                { return c.done }
func (c *conn) RenewCertificate(context.Context, *ca.Identity) error { return nil }
func (c *conn) cut()                                                 { c.once.Do(func() { close(c.done); c.CloseClientConnections() }) }

// connect begins a leader that answers with h.
func connect(t *testing.T, h http.HandlerFunc) *conn {
	t.Helper()
	c := &conn{Server: httptest.NewUnstartedServer(h), done: make(chan struct{})}
	c.EnableHTTP2 = true
	c.StartTLS()
	t.Cleanup(c.Close)
	return c
}

// hostAt runs the daemon of host b in a folder until the test ends, or its stop.
func hostAt(t *testing.T, dir string, to *conn, shims shims) (*daemon, <-chan error) {
	t.Helper()
	space, err := workspace.OpenWorkspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := SaveConfig(dir, example); err != nil {
		t.Fatal(err)
	}
	id := newTeam(t).join(t, Folder(dir), "b", cluster.Host)
	line := &line{came: make(chan struct{}, 1)}
	ready, finished := make(chan struct{}), make(chan error, 1)
	d := &daemon{
		Options: Options{
			Dir: dir, Space: space, Identity: id, Config: example, Log: slog.New(slog.DiscardHandler),
			Ready: func() { close(ready) },
		},
		line:    line,
		sockets: caller.NewSessionSockets(),
		known:   &addresses{log: slog.New(slog.DiscardHandler), dir: dir, conf: example},
		keeper: &leaseKeeper{
			facts: wire.RenewIn{Boot: "boot-1", Capacity: 4, Daemon: "daemon-0"}, name: "b", team: "shop", folder: Folder(dir),
			find: func(_, _ []host.Lack) []host.Lack { return nil },
			now:  boottime.Now, leader: line, shims: shims, log: slog.New(slog.DiscardHandler),
		},
		dial: func(ctx context.Context, up func(connection)) error {
			up(to)
			<-ctx.Done()
			return ctx.Err()
		},
	}
	if d.dir, err = sessions.SettledDir(dir); err != nil {
		t.Fatal(err)
	}
	if err := d.keeper.begin(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		finished <- errors.Join(d.run(ctx), space.Close())
	}()
	t.Cleanup(func() { cancel(); <-over })
	select {
	case <-ready:
	case err := <-finished:
		t.Fatalf("the daemon ended: %v", err)
	}
	return d, finished
}

// noShims are those of a host on which nothing runs.
type noShims struct{}

func (noShims) Known() []host.Local                         { return nil }
func (noShims) End(context.Context, string) error           { return nil }
func (noShims) Extend(context.Context, host.BootTime) error { return nil }

func bySocket(t *testing.T, dir string) *http.Client {
	t.Helper()
	at, err := workspace.FindDaemon(dir)
	if err != nil {
		t.Fatal(err)
	}
	dialer := &net.Dialer{}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", at.Socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// renews answers renewals, and leaves the rest to another handler.
func renews(rest http.HandlerFunc) http.HandlerFunc {
	var mu sync.Mutex
	revision := uint64(1)
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != wire.RenewRoute {
			rest(w, r)
			return
		}
		var in wire.RenewIn
		if err := wire.Read(r.Body, &in); err != nil {
			wire.Fail(w, err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if in.N > 0 && in.Revision == revision {
			revision++
		}
		wire.Answer(w,
			wire.RenewOut{
				Host: host.Host{Name: "b", State: host.Joined, Boot: "boot-1", Incarnation: 1, Capacity: 4}, Epoch: 1,
				Revision: revision, Daemon: in.Daemon, N: in.N,
			})
	}
}

// A program cannot say who it is: the host overwrites the header, whatever the program does to keep it.
func TestCallerIsOverwritten(t *testing.T) {
	const forged = `{"session":"coder-17"}`
	got := make(chan http.Header, 1)
	dir := t.TempDir()
	hostAt(t, dir, connect(t, renews(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // its trailers come after it
		h := r.Header.Clone()
		for name, values := range r.Trailer {
			h["Trailer-"+name] = values
		}
		got <- h
	})), noShims{})
	c := bySocket(t, dir)
	for name, change := range map[string]func(*http.Request){
		"nothing":     func(*http.Request) {},
		"the header":  func(r *http.Request) { r.Header.Set(wire.CallerField, forged) },
		"two headers": func(r *http.Request) { r.Header[wire.CallerField] = []string{forged, forged} },
		"lower case":  func(r *http.Request) { r.Header["fairlead-caller"] = []string{forged} },
		"a header that the connection ends": func(r *http.Request) {
			r.Header.Set(wire.CallerField, forged)
			r.Header.Set("Connection", wire.CallerField)
		},
		"a trailer": func(r *http.Request) { r.Trailer = http.Header{wire.CallerField: {forged}} },
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://b"+api.Base+"/hold",
			io.MultiReader(strings.NewReader("{}")))
		if err != nil {
			t.Fatal(err)
		}
		change(r)
		answer, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		h := <-got
		var is wire.Caller
		if values := h.Values(wire.CallerField); len(values) != 1 || json.Unmarshal([]byte(values[0]), &is) != nil ||
			is != (wire.Caller{Seen: true}) {
			t.Errorf("%s: the leader reads %q", name, values)
		}
	}
}

const askVar = "FAIRLEAD_TEST_ASK" // the folder whose daemon the child asks

// A program in a session is that session for the leader, and may not end the daemon of its host.
func TestSessionOfAHost(t *testing.T) {
	if dir := os.Getenv(askVar); dir != "" {
		c, err := client.Dial(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = c.Hold(t.Context(), "") // the parent looks at what arrives
		if _, err := c.Down(t.Context(), true); err == nil || !strings.Contains(err.Error(), "coder-17") {
			t.Errorf("down: %v", err)
		}
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says which process is at the other end")
	}
	got := make(chan string, 1)
	dir := t.TempDir()
	d, _ := hostAt(t, dir, connect(t, renews(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get(wire.CallerField) })),
		noShims{})
	sum := sha256.Sum256([]byte(d.dir))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSessionOfAHost$", "-test.v") //nolint:gosec // this test
	cmd.Env = append(os.Environ(), askVar+"="+d.dir, "FAIRLEAD_MARK="+hex.EncodeToString(sum[:8])+".coder-17")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var is wire.Caller
	if said := <-got; json.Unmarshal([]byte(said), &is) != nil || is.Session != "coder-17" {
		t.Errorf("the leader reads %s", said)
	}
}

// A line is passed on when the leader sends it, and the stream ends with its program.
func TestStreamIsPassedOn(t *testing.T) {
	more, left := make(chan struct{}), make(chan struct{})
	dir := t.TempDir()
	hostAt(t, dir, connect(t, renews(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream") // as the output of a session
		for n := 1; ; n++ {
			fmt.Fprintf(w, "data: %d\n\n", n)
			_ = http.NewResponseController(w).Flush() // a failure ends the request
			select {
			case <-more:
			case <-r.Context().Done():
				close(left)
				return
			}
		}
	})), noShims{})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://b"+api.Base+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := bySocket(t, dir).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	for n := 1; n <= 3; n++ { // the leader waits until each was read
		if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", n) {
			t.Fatalf("%q, %v", line, err)
		}
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		more <- struct{}{}
	}
	cancel()
	<-left
}

// Without a connection a request is answered with what that means, and is not carried out.
func TestLeaderIsAway(t *testing.T) {
	dir, broken := t.TempDir(), make(chan struct{}, 1)
	leader := connect(t, renews(func(http.ResponseWriter, *http.Request) {
		broken <- struct{}{}
		panic(http.ErrAbortHandler)
	}))
	d, ended := hostAt(t, dir, leader, noShims{})
	c, err := client.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var p *api.Problem
	if _, err := c.Hold(t.Context(), ""); !errors.As(err, &p) || p.Status != http.StatusBadGateway ||
		!strings.Contains(err.Error(), "may have carried out the request") {
		t.Errorf("the leader broke off: %v", err)
	}
	<-broken
	if is, err := c.Leader(t.Context()); err != nil || is.NoLeaderSince != nil {
		t.Errorf("with a connection: %+v, %v", is, err)
	}
	leader.cut()
	if is, err := c.Leader(t.Context()); err != nil || is.NoLeaderSince == nil || is.Leads || is.AsOf != nil {
		t.Errorf("without a connection: %+v, %v", is, err)
	}
	if _, err := c.Hold(t.Context(), ""); err == nil ||
		!strings.HasSuffix(err.Error(), "; nothing was done: run the command again when a leader answers") {
		t.Errorf("an order without a leader: %v", err)
	}
	if _, err := c.Agents(t.Context()); err == nil || strings.Contains(err.Error(), "nothing was done") {
		t.Errorf("a look without a leader: %v", err)
	}
	if _, err := c.Hold(t.Context(), ""); !client.Away(err) ||
		!strings.Contains(err.Error(), "host b has no connection to the leader of team shop at a:4222, [fd00::1]:4222 since ") {
		t.Errorf("the leader is away: %v", err)
	}
	if answer, err := bySocket(t, dir).Get("http://b/"); err != nil ||
		answer.StatusCode != http.StatusNotFound { //nolint:noctx // a local socket
		t.Errorf("the page: %v, %v", answer, err)
	} else {
		answer.Body.Close()
	}
	if _, err := c.Down(t.Context(), false); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if free, err := workspace.Free(d.Dir); !free || err != nil {
		t.Errorf("the folder is in use after down: %v", err)
	}
}

// What a person reads depends on what runs here and until when.
func TestAway(t *testing.T) {
	w := newWorld(t, 1)
	k := w.daemon(t.TempDir(), "daemon-0")
	says := func(want string) {
		t.Helper()
		if got := k.away([]string{"a:4222"}); !strings.HasPrefix(got,
			"host b has no connection to the leader of team shop at a:4222 since ") || !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	says("its daemon started")
	for !k.guard.Holds(w.hostNow()) {
		w.advance(time.Second, false)
		if err := k.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	says("no session runs here")
	p := w.start(k, host.Restart)
	p.began = true
	says("the sessions here end at ")
	w.at += time.Hour
	says("the sessions here have ended")
}
