package link

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// team is a certificate authority, its members and a clock that a test moves.
type team struct {
	t         *testing.T
	authority *ca.Authority
	log       *slog.Logger

	mu      sync.Mutex
	members map[string]cluster.Member
	at      time.Time
	dirs    map[*ca.Identity]string
}

func newTeam(t *testing.T, name string) *team {
	t.Helper()
	f := &team{
		t: t, members: map[string]cluster.Member{}, dirs: map[*ca.Identity]string{}, at: time.Now(),
		log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	var err error
	if f.authority, err = ca.Create(t.TempDir(), name, f.at); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *team) now() time.Time { f.mu.Lock(); defer f.mu.Unlock(); return f.at }

func (f *team) move(d time.Duration) { f.mu.Lock(); defer f.mu.Unlock(); f.at = f.at.Add(d) }

func (f *team) Member(name string) (cluster.Member, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.members[name]
	return m, ok
}

func (f *team) remove(name string) { f.mu.Lock(); defer f.mu.Unlock(); delete(f.members, name) }

// join makes a member.
func (f *team) join(name string, role cluster.Role) *ca.Identity {
	f.t.Helper()
	dir := f.t.TempDir()
	id, err := ca.NewIdentity(dir, name, f.now)
	if err != nil {
		f.t.Fatal(err)
	}
	var names []string
	if role == cluster.Engine {
		names = []string{"127.0.0.1"}
	}
	request, err := id.Request(names)
	if err != nil {
		f.t.Fatal(err)
	}
	certificate, err := f.authority.Sign(request, name, role, func(net.IP) bool { return true }, f.now())
	if err == nil {
		err = id.Install(certificate, f.authority.PEM())
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members[name] = cluster.Member{Name: name, Role: role, Key: id.PublicKey()}
	f.dirs[id] = dir
	return id
}

// dir is where an identity's files are.
func (f *team) dir(id *ca.Identity) string { f.mu.Lock(); defer f.mu.Unlock(); return f.dirs[id] }

// quiet keeps pings out of a test that is not about them: a machine may be busy for longer.
const quiet = time.Minute

// listen starts the leader, a.
func (f *team) listen(o Options) *Hub {
	f.t.Helper()
	if o.Identity == nil {
		o.Identity = f.join("a", cluster.Engine)
	}
	o.Members, o.Log = f, f.log
	if o.Handler == nil {
		o.Handler = http.NotFoundHandler()
	}
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	h := Serve(l, o)
	f.t.Cleanup(func() { h.Close() })
	return h
}

// Address is where the Hub listens.
func (h *Hub) Address() string { return h.listener.Addr().String() }

// options are those of a host that dials an address.
func (f *team) options(id *ca.Identity, address string, handler http.Handler) DialOptions {
	if handler == nil {
		handler = http.NotFoundHandler()
	}
	return DialOptions{Identity: id, Addresses: func() []string { return []string{address} }, Handler: handler, Log: f.log, ping: quiet}
}

func (f *team) dial(id *ca.Identity, address string, handler http.Handler) *Conn {
	f.t.Helper()
	c, err := Dial(f.t.Context(), f.options(id, address, handler))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { c.Close() })
	return c
}

// pair is a leader with one connected host, b.
func (f *team) pair(leader, host http.Handler) (*Hub, *Conn) {
	f.t.Helper()
	h := f.listen(Options{Handler: leader, ping: quiet})
	c := f.dial(f.join("b", cluster.Host), h.Address(), host)
	f.await(h)
	return h, c
}

func (f *team) await(h *Hub) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), wait.Patience)
	defer cancel()
	if err := h.Await(ctx, "b"); err != nil {
		f.t.Fatal(err)
	}
}

// asker sends requests to the other end.
type asker func() (*http.Client, string)

func toB(t *testing.T, h *Hub) asker {
	return func() (*http.Client, string) {
		client, base, err := h.Client("b")
		if err != nil {
			t.Error(err)
			return http.DefaultClient, "http://127.0.0.1:1"
		}
		return client, base
	}
}

// ask posts a body, and returns the answer.
func ask(ctx context.Context, to asker, path string, body io.Reader) (*http.Response, error) {
	client, base := to()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, body)
	if err != nil {
		return nil, err
	}
	return client.Do(r)
}

func text(t *testing.T, to asker, path, body string) string {
	t.Helper()
	answer, err := ask(t.Context(), to, path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// proxy forwards connections until it is told to stop or to reset them.
type proxy struct {
	net.Listener
	to string

	mu      sync.Mutex
	conns   []*net.TCPConn
	stopped bool
	tasks   sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, to: to}
	p.tasks.Go(p.run)
	t.Cleanup(func() { l.Close(); p.reset(); p.tasks.Wait() })
	return p
}

func (p *proxy) run() {
	for {
		in, err := p.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil {
			in.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, in.(*net.TCPConn), out.(*net.TCPConn))
		p.mu.Unlock()
		p.tasks.Go(func() { p.copy(in, out) })
		p.tasks.Go(func() { p.copy(out, in) })
	}
}

// copy keeps both connections open when it is stopped.
func (p *proxy) copy(to, from net.Conn) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		p.mu.Lock()
		stopped := p.stopped
		p.mu.Unlock()
		if stopped {
			return
		}
		if err == nil {
			_, err = to.Write(b[:n])
		}
		if err != nil {
			to.Close()
			return
		}
	}
}

func (p *proxy) stop() { p.mu.Lock(); defer p.mu.Unlock(); p.stopped = true }

func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.SetLinger(0)
		c.Close()
	}
	p.conns = nil
}
