package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api/server"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon/worker"
	"github.com/fairlead-dev/fairlead/cli/hosts"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/engine"
	"github.com/fairlead-dev/fairlead/hosts/invite"
	"github.com/fairlead-dev/fairlead/hosts/link"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/test/ports"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// members is a team that has only members. It implements hostTeam.
type members struct {
	mu   sync.Mutex
	all  map[string]cluster.Member
	left []string

	differs string // the host with another fairlead.yaml
}

func (m *members) Members() cluster.Members { return m }

func (m *members) Member(name string) (cluster.Member, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	is, ok := m.all[name]
	return is, ok
}

func (m *members) Admit(_ context.Context, j invite.Joiner) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j.Name == "full" {
		return errors.New("no room")
	}
	m.all[j.Name] = j.Member
	return nil
}

func (m *members) Renew(_ context.Context, name string, in wire.RenewIn) (wire.RenewOut, error) {
	return wire.RenewOut{Host: host.Host{Name: name, Boot: in.Boot}}, nil
}

func (m *members) Grant(context.Context, string, wire.GrantIn) (host.Grant, error) {
	return host.Grant{}, &wire.Problem{Code: wire.NotHere, Why: "no such session"}
}

func (m *members) Leave(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = append(m.left, name)
	delete(m.all, name)
	return nil
}

func (m *members) HostOf(string) string { return "b" }

func (m *members) Differs(name string) bool { return name == m.differs }

// leader makes a repository one of a leader, at a free port.
func leader(t *testing.T) (dir string, a *cli.App) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fairlead.yaml"), []byte("version: 1\nagents: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a = &cli.App{Dir: dir, Out: io.Discard, Err: io.Discard}
	if err := hosts.Init(a, hosts.Cluster{Name: "a", Team: "web", Listen: ports.Address(2)}); err != nil {
		t.Fatal(err)
	}
	return dir, a
}

func besideOf(t *testing.T) *engines {
	t.Helper()
	e := &engines{}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// Other engine hosts compare their fairlead.yaml with that with which the leader's daemon runs, also if the file has changed since.
func TestLeaderNamesItsConfiguration(t *testing.T) {
	t.Parallel()
	dir, _ := leader(t)
	e := besideOf(t)
	l, err := openLead(t.Context(), &config.Config{Dir: dir, Sum: "before"}, slog.New(slog.DiscardHandler), e)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.engines(func() ([]cluster.EngineHost, []string) { return []cluster.EngineHost{{Name: "a"}}, nil })
	wait.Until(t, "it is known", func() bool { return len(e.known().Engines) == 1 })
	if is := e.known().Config; is != "before" {
		t.Errorf("the configuration is %q", is)
	}
}

// What is known of the copies of the journal can be asked for while the engine hosts change: who asks holds a lock that this needs.
func TestCopiesAreSeenWhileEngineHostsChange(t *testing.T) {
	t.Parallel()
	e := besideOf(t)
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := make(chan []cluster.Copy, 1)
	go func() {
		e.extend(1) // a renewal of the lease
		e.leading() // a renewal of another host
		seen <- e.copiesSeen()
	}()
	wait.Until(t, "they are seen", func() bool { return len(seen) > 0 })
}

// leadOf opens a leader. Its API answers which host asks, and for what.
func leadOf(t *testing.T, dir string, team hostTeam) *lead {
	t.Helper()
	l, err := openLead(t.Context(), &config.Config{Dir: dir}, slog.New(slog.DiscardHandler), besideOf(t))
	if err != nil {
		t.Fatal(err)
	}
	l.begin(team, func(host string, placedOn func(string) string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			wire.Answer(w, host+" "+r.URL.Path+" "+placedOn("x"))
		})
	})
	t.Cleanup(func() { l.Close() })
	return l
}

func join(t *testing.T, token, name string) (*cli.App, error) {
	t.Helper()
	b, _ := hostApp(t)
	return b, hosts.Join(t.Context(), b, []string{token}, hosts.Joining{Name: name, Labels: []string{"big"}})
}

// A host joins at the leader's port, also after a restart of the leader. An invitation is for one host.
func TestJoinLeader(t *testing.T) {
	dir, _ := leader(t)
	team := &members{all: map[string]cluster.Member{}}
	l := leadOf(t, dir, team)
	first, err := l.Invite(t.Context(), "human/ann", []string{"gpu"}, false)
	if err != nil || !first.Loopback || first.Address != l.is.Listen {
		t.Fatalf("%+v %v", first, err)
	}
	if _, err := join(t, first.Token, "full"); err == nil || !strings.Contains(err.Error(), "no room") ||
		cli.CodeOf(err) != cli.ExitRefused {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = leadOf(t, dir, team)
	b, err := join(t, first.Token, "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := join(t, first.Token, "c"); err == nil || !strings.Contains(err.Error(), "was used by another host") {
		t.Error(err)
	}
	if err := hosts.Join(t.Context(), b, []string{first.Token}, hosts.Joining{}); err == nil ||
		!strings.Contains(err.Error(), "is host b of team web") {
		t.Error(err)
	}
	is, err := worker.LoadConfig(b.Dir)
	if err != nil || is.Name != "b" || is.Team != "web" || strings.Join(is.Labels, " ") != "big gpu" || is.Capacity != 4 ||
		strings.Join(is.Addresses, " ") != l.is.Listen {
		t.Errorf("%+v %v", is, err)
	}
}

// What a host asks reaches the team under its name, and what its programs ask reaches the API.
func TestLeadAnswersHosts(t *testing.T) {
	dir, _ := leader(t)
	team := &members{all: map[string]cluster.Member{}}
	l := leadOf(t, dir, team)
	invited, err := l.Invite(t.Context(), "human/ann", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	b, err := join(t, invited.Token, "b")
	if err != nil {
		t.Fatal(err)
	}
	id, err := ca.LoadIdentity(worker.Folder(b.Dir), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	o := link.DialOptions{
		Identity: id, Addresses: func() []string { return []string{l.is.Listen} }, Handler: http.NotFoundHandler(),
		Log: slog.New(slog.DiscardHandler),
	}
	conn, err := link.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	client, base := conn.Client()
	for _, c := range []struct{ path, in, want string }{
		{wire.RenewRoute, `{"boot":"boot-1"}`, `"name":"b"`},
		{wire.RenewRoute, `"text"`, `"code":"bad_request"`},
		{wire.GrantRoute, `{}`, `"code":"not_here","why":"no such session"`},
		{"/api/v1/hosts", `{}`, `"b /api/v1/hosts b"`},
		{wire.CertificateRoute, `{}`, `"code"`},
		{wire.LeaveRoute, `{}`, `{}`},
	} {
		answer, err := client.Post(base+c.path, "application/json", strings.NewReader(c.in)) //nolint:noctx // the connection ends
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || !strings.Contains(string(said), c.want) {
			t.Errorf("%s: %s %v, want %s", c.path, said, err, c.want)
		}
	}
	if len(team.left) != 1 || team.left[0] != "b" {
		t.Error(team.left)
	}
	conn.Close()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := link.Dial(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no program listens there") {
		t.Error("a closed leader answers", err)
	}
}

// Without cluster.json nothing is opened. What a person changes there is taken in by a reload.
func TestClusterChanges(t *testing.T) {
	dir, a := leader(t)
	log := slog.New(slog.DiscardHandler)
	if l, err := openLead(t.Context(), &config.Config{Dir: t.TempDir()}, log, besideOf(t)); l != nil || err != nil || l.inviter() != nil {
		t.Error(l, err)
	}
	d := &Daemon{Conf: must(a.Load())}
	if changes, err := d.clusterChanges(); err != nil || len(changes) != 1 || !strings.Contains(changes[0], "host a leads team web") {
		t.Error(changes, err)
	}
	var err error
	if d.lead, err = openLead(t.Context(), &config.Config{Dir: dir}, log, besideOf(t)); err != nil {
		t.Fatal(err)
	}
	defer d.lead.Close()
	if changes, err := d.clusterChanges(); len(changes) != 0 || err != nil {
		t.Error(changes, err)
	}
	if _, err := openLead(t.Context(), &config.Config{Dir: dir}, log, besideOf(t)); err == nil ||
		!strings.Contains(err.Error(), "choose another port") {
		t.Error(err)
	}
	if err := hosts.Leave(t.Context(), a, false, false); err != nil {
		t.Fatal(err)
	}
	if changes, err := d.clusterChanges(); err != nil || len(changes) != 1 || !strings.Contains(changes[0], "no longer leads a cluster") {
		t.Error(changes, err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// In the folder of a host, up runs the host and down ends it. A host that was removed ends by itself, with the reason.
func TestUpOfAHost(t *testing.T) {
	dir, _ := leader(t)
	team := &members{all: map[string]cluster.Member{}}
	l, err := openLead(t.Context(), &config.Config{Dir: dir}, slog.New(slog.DiscardHandler), besideOf(t))
	if err != nil {
		t.Fatal(err)
	}
	var state atomic.Value
	state.Store(string(host.Joined))
	api := http.NewServeMux() // what the leader's API says of the host
	api.HandleFunc("GET /api/v1/hosts", func(w http.ResponseWriter, r *http.Request) {
		wire.Answer(w, view.Hosts{On: true, Hosts: []view.Host{{Name: "b", State: state.Load().(string)}}})
		state.CompareAndSwap(string(host.Draining), string(host.Left)) // by the next question its last session has ended
	})
	api.HandleFunc("POST /api/v1/hosts/b/drain", func(w http.ResponseWriter, r *http.Request) {
		state.Store(string(host.Draining))
		wire.Answer(w, struct{}{})
	})
	l.begin(team, func(string, func(string) string) http.Handler { return api })
	defer l.Close()
	t.Setenv("XDG_RUNTIME_DIR", shortFolder(t))
	invited, err := l.Invite(t.Context(), "human/ann", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	b, out := hostApp(t)
	if err := hosts.Join(t.Context(), b, []string{invited.Token}, hosts.Joining{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := Up(t.Context(), b, UpOptions{Listen: "127.0.0.1:0"}); cli.CodeOf(err) != cli.ExitUsage {
		t.Error(err)
	}
	if _, err := openDaemon(t.Context(), &Daemon{Conf: must((&cli.App{Dir: b.Dir}).LoadOrNone())}, ""); cli.CodeOf(err) != cli.ExitRefused {
		t.Error(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- Up(t.Context(), b, UpOptions{}) }()
	wait.Until(t, "the host is ready", func() bool { return strings.Contains(out.String(), "ready host b of team web\n") })
	down := &cli.App{Dir: b.Dir, Out: io.Discard, Err: io.Discard}
	if err := Down(t.Context(), down, false); err != nil {
		t.Error(err)
	}
	if err := wait.For(t, "the end of the host", ended); err != nil {
		t.Error(err)
	}
	if err := hosts.Leave(t.Context(), down, false, false); err == nil ||
		!strings.Contains(err.Error(), "start it with `fairlead up`, and run the command again") {
		t.Error(err)
	}
	go func() { ended <- Up(t.Context(), b, UpOptions{}) }()
	wait.Until(t, "the leader is asked", func() bool {
		client, err := down.Dial()
		if err != nil {
			return false
		}
		defer client.Close()
		_, err = client.Hosts(t.Context())
		return err == nil
	})
	if err := hosts.Leave(t.Context(), down, false, false); err != nil || state.Load() != string(host.Left) {
		t.Error(err, state.Load())
	}
	if err := wait.For(t, "the end of a host that has left", ended); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(worker.Folder(b.Dir)); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	if err := team.Leave(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if invited, err = l.Invite(t.Context(), "human/ann", nil, false); err != nil {
		t.Fatal(err)
	}
	if err := hosts.Join(t.Context(), b, []string{invited.Token}, hosts.Joining{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	if err := team.Leave(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- Up(t.Context(), b, UpOptions{}) }()
	if err := wait.For(t, "the end of a host that was removed", ended); cli.CodeOf(err) != cli.ExitRefused ||
		!strings.Contains(err.Error(), "new invitation") {
		t.Error(err)
	}
	if err := hosts.Leave(t.Context(), down, false, false); err != nil {
		t.Error(err)
	}
}

// hostApp has an empty folder.
func hostApp(t *testing.T) (*cli.App, *output) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out := &output{}
	return &cli.App{Dir: dir, Out: out, Err: io.Discard}, out
}

// shortFolder is for sockets, whose paths are limited.
func shortFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fl") //nolint:usetesting // the name of a test folder may be too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// output is written and read by two goroutines.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) Reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Reset()
}

// A port in use ends the start of a daemon. A host that takes the lead over leads all the same.
func TestPortInUse(t *testing.T) {
	dir, _ := leader(t)
	other, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	addr := other.Addr().String()
	for _, takesOver := range []bool{false, true} {
		d := &Daemon{Conf: &config.Config{Dir: dir}, log: slog.New(slog.DiscardHandler), takesOver: takesOver}
		listener, err := d.listen(addr)
		taken := &server.PortTaken{}
		if errors.As(err, &taken) == takesOver || takesOver != (listener != nil) {
			t.Fatalf("takes over %t: %v, %v", takesOver, listener, err)
		}
		if listener == nil {
			continue
		}
		defer listener.Close()
		if listener.Addr().String() == addr {
			t.Errorf("it listens on %s, too", addr)
		}
	}
}

// Whatever the state does not allow is refused (exit code 3). What cannot be handed over changes nothing.
func TestRefusalsOfALeader(t *testing.T) {
	dir, _ := leader(t)
	l := leadOf(t, dir, &members{all: map[string]cluster.Member{}, differs: "b"})
	if err := l.Lead(t.Context(), "b"); cli.CodeOf(err) != cli.ExitRefused || !strings.Contains(err.Error(), "on this machine alone") {
		t.Errorf("the journal is not replicated: %v", err)
	}
	l.beside.leads.Store(&engine.Lead{})
	l.beside.mu.Lock()
	l.beside.facts = engine.Facts{Stream: true, Engines: []cluster.EngineHost{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	l.beside.mu.Unlock()
	for name, says := range map[string]string{
		"a": "it leads already", "b": "its fairlead.yaml differs", "c": "it is not connected",
		"d": "no engine host",
	} {
		err := l.Lead(t.Context(), name)
		if cli.CodeOf(err) != cli.ExitRefused || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: exit code %d, %v", name, cli.CodeOf(err), err)
		}
	}
	var err error
	for n := 0; err == nil && n < 1000; n++ {
		_, err = l.Invite(t.Context(), "human/ann", nil, false)
	}
	if cli.CodeOf(err) != cli.ExitRefused || !strings.Contains(err.Error(), "invitations are open") {
		t.Errorf("too many invitations: exit code %d, %v", cli.CodeOf(err), err)
	}
}
