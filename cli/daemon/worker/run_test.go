package worker

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/hosts/link"
	"github.com/fairlead-dev/fairlead/hosts/remote"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// leading is a leader with the real table of hosts, on a real link.
type leading struct {
	t       *testing.T
	team    *team
	hub     *link.Hub
	address string
	asks    chan string // what programs on the host ask, with the host's name

	mu sync.Mutex
	w  *world
}

func lead(t *testing.T) *leading {
	t.Helper()
	l := &leading{t: t, team: newTeam(t), asks: make(chan string, 16), w: newWorld(t, 1)}
	l.w.hosts = host.Hosts{} // the host joins by itself
	if err := l.w.decide(host.Join{Name: "b", Boot: "before", Capacity: 1, Invited: true}); err != nil {
		t.Fatal(err)
	}
	listener, err := link.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.address = listener.Addr().String()
	l.hub = link.Serve(listener,
		link.Options{
			Identity: l.team.join(t, t.TempDir(), "a", cluster.Engine), Members: l.team, Handler: l,
			Log: slog.New(slog.DiscardHandler),
		})
	t.Cleanup(func() { l.hub.Close() })
	return l
}

func (l *leading) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r.URL.Path {
	case wire.RenewRoute:
		post(w, r, func(in wire.RenewIn) (wire.RenewOut, error) { return l.w.renew(r.Context(), in) })
	case wire.GrantRoute:
		post(w, r, func(in wire.GrantIn) (host.Grant, error) { return l.w.grant(r.Context(), in) })
	default:
		l.asks <- link.HostOf(r.Context()) + " " + r.URL.Path + " " + r.Header.Get(wire.CallerField)
		wire.Answer(w, struct{}{})
	}
}

func post[In, Out any](w http.ResponseWriter, r *http.Request, answer func(In) (Out, error)) {
	var in In
	err := wire.Read(r.Body, &in)
	var out Out
	if err == nil {
		out, err = answer(in)
	}
	if err != nil {
		wire.Fail(w, err)
		return
	}
	wire.Answer(w, out)
}

// on uses the leader's team.
func (l *leading) on(do func(w *world)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do(l.w)
}

// start places a session on host b and starts it there.
func (l *leading) start(session string, argv ...string) sessionhost.Process {
	l.t.Helper()
	var token host.Token
	l.on(func(w *world) {
		if err := w.decide(host.Place{Session: session, Host: "b"}); err != nil {
			l.t.Error(err)
		}
		token = w.hosts.Leases[session].Token
	})
	h := &remote.Host{
		Name: "b", Log: slog.New(slog.DiscardHandler), Gone: func(string) <-chan struct{} { return nil },
		Dial: func(ctx context.Context) (*http.Client, string, error) {
			if err := l.hub.Await(ctx, "b"); err != nil {
				return nil, "", err
			}
			return l.hub.Client("b")
		},
	}
	proc, err := h.StartOn(l.t.Context(),
		wire.StartIn{Token: token, Epoch: 1, Launch: spawn.Launch{Argv: argv, Dir: l.t.TempDir(), Env: []string{"PATH=/usr/bin:/bin"}}},
		session)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { proc.Close() })
	return proc
}

// run runs the daemon of host b until the test ends or the returned function is called.
func (l *leading) run(dir string, c Config) (stop func() error) {
	l.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan struct{})
	var err error
	go func() {
		defer close(ended)
		err = Run(ctx,
			Options{
				Dir: dir, Config: c, Log: slog.New(slog.DiscardHandler), Version: "1.2.3",
				Ready: sync.OnceFunc(func() { close(ready) }),
			})
	}()
	stop = func() error { cancel(); <-ended; return err }
	l.t.Cleanup(func() { _ = stop() })
	select {
	case <-ready:
	case <-ended:
		l.t.Fatalf("the daemon ended: %v", err)
	}
	return stop
}

// A host joins over the real link, runs sessions with real shims, passes requests on, survives a restart of its daemon, and
// ends what has no lease.
func TestHost(t *testing.T) {
	l := lead(t)
	dir := t.TempDir()
	space, err := workspace.OpenWorkspace(dir) // as a host that joins does, before it has its keys
	if err != nil {
		t.Fatal(err)
	}
	space.Close()
	if err := SaveConfig(dir,
		Config{Name: "b", Team: "shop", Addresses: []string{l.address}, Capacity: 4, Labels: []string{"gpu"}}); err != nil {
		t.Fatal(err)
	}
	l.team.join(t, Folder(dir), "b", cluster.Host)
	c, err := LoadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	stop := l.run(dir, c)
	renewed := func(after uint64) func() bool {
		return func() (is bool) { l.on(func(w *world) { is = w.entry.n > 0 && w.entry.revision > after }); return is }
	}
	wait.Until(t, "the host has renewed its lease", renewed(0))
	l.on(func(w *world) {
		if b := w.b(); b.Incarnation != 2 || b.Boot != workspace.BootID() || b.Capacity != 4 || len(b.Labels) != 1 {
			t.Errorf("it joined as %+v", b)
		}
	})
	proc := l.start("coder-1", "sh", "-c", "echo coder-1; exec sleep 1000")

	answer, err := bySocket(t, dir).Get("http://b" + api.Base + "/agents") //nolint:noctx // a local socket
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if got := <-l.asks; got != `b `+api.Base+`/agents {"seen":true}` {
		t.Errorf("the leader is asked: %s", got)
	}

	if err := stop(); err != nil {
		t.Error(err)
	}
	var before uint64
	l.on(func(w *world) { before = w.entry.revision })
	stop = l.run(dir, c)
	wait.Until(t, "the next daemon has renewed the lease", renewed(before))
	second := l.start("coder-2", "sh", "-c", "echo coder-2; exec sleep 1000")
	select {
	case <-proc.Done():
		t.Error("the session ended with its daemon")
	default:
	}
	l.on(func(w *world) {
		if err := w.decide(host.Release{Session: "coder-1"}); err != nil {
			t.Error(err)
		}
	})
	<-proc.Done()
	select {
	case <-second.Done():
		t.Error("the session with a lease ended, too")
	default:
	}
	if err := second.End(t.Context(), 0); err != nil {
		t.Error(err)
	}
	<-second.Done()

	l.team.remove("b")
	l.hub.Recheck()
	var gone *Gone
	wait.Until(t, "the daemon has ended", func() bool { free, err := workspace.Free(dir); return free && err == nil })
	if err := stop(); !errors.As(err, &gone) || gone.Left {
		t.Errorf("a removed host: %v", err)
	}
}
