package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/jetstream"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/invite"
	"github.com/fairlead-dev/fairlead/internal/test/wait"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

// team is a cluster on loopback: an authority, members, and nodes.
type team struct {
	t         *testing.T
	authority *ca.Authority
	log       *slog.Logger

	mu      sync.Mutex
	at      time.Time // by the clock of all hosts
	members map[string]cluster.Member
}

func newTeam(t *testing.T, name string) *team {
	t.Helper()
	f := &team{
		t: t, members: map[string]cluster.Member{}, at: time.Now(),
		log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError + 1})),
	}
	var err error
	if f.authority, err = ca.Create(t.TempDir(), name, f.at); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *team) now() time.Time { f.mu.Lock(); defer f.mu.Unlock(); return f.at }

// Member is the membership, as the journal would have it.
func (f *team) Member(name string) (cluster.Member, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.members[name]
	return m, ok
}

func (f *team) set(name string, m cluster.Member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.members[name] = m; m.Name == "" {
		delete(f.members, name)
	}
}

func (f *team) remove(name string) { f.set(name, cluster.Member{}) }

// host makes a member.
func (f *team) host(name string, role cluster.Role) *ca.Identity {
	f.t.Helper()
	id, err := ca.NewIdentity(f.t.TempDir(), name, f.now)
	if err != nil {
		f.t.Fatal(err)
	}
	request, err := id.Request([]string{name, "127.0.0.1"})
	if err != nil {
		f.t.Fatal(err)
	}
	cert, err := f.authority.Sign(request, name, role, net.IP.IsLoopback, f.now())
	if err == nil {
		err = id.Install(cert, f.authority.PEM())
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.set(name, cluster.Member{Name: name, Role: role, Key: id.PublicKey()})
	return id
}

func (f *team) options(id *ca.Identity) Options {
	return Options{Identity: id, Members: f, Dir: filepath.Join(f.t.TempDir(), "nats"), Address: "127.0.0.1:0", Log: f.log}
}

func (f *team) start(o Options) *Node {
	f.t.Helper()
	n, err := Start(f.t.Context(), o)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = n.Stop(context.Background()) })
	return n
}

// connect connects a host. ended gets the reason when its connection is closed for good.
func (f *team) connect(id *ca.Identity, address string) (nc *nats.Conn, ended chan error) {
	f.t.Helper()
	ended = make(chan error, 1)
	nc, err := connectFrom(f.t.Context(), id, []string{address}, f.log, func(err error) { ended <- err })
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(nc.Close)
	return nc, ended
}

// TestPermissions is the matrix: each subject, both directions. Engine host b tries all.
func TestPermissions(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	n := f.start(f.options(f.host("a", cluster.Engine)))
	const no, pub, sub = "--", "p-", "-s"
	nc, _ := f.connect(f.host("b", cluster.Engine), n.Address())
	for _, row := range []struct{ subject, want string }{
		{"fairlead.host.b", no},
		{cluster.JournalSubject, pub},
		{"$O.fairlead-journal-snapshots.C.x", pub},
		{"$O.fairlead-journal-snapshots.M.x", pub},
		{"$KV.fairlead-leases.b.1", pub},
		{"$KV.fairlead-leases.c.1", pub},
		{"$KV.fairlead-leases.b", pub},
		{"$KV.other.b.1", no},
		{"_INBOX.b.x", sub},
		{"_INBOX.c.x", no},
		{"_INBOX.x", no},
		{"$JS.API.STREAM.INFO.KV_fairlead-leases", pub},
		{"$JS.API.STREAM.INFO.fairlead-journal", pub},
		{"$JS.API.DIRECT.GET.KV_fairlead-leases.$KV.fairlead-leases.b.1", pub},
		{"$JS.API.DIRECT.GET.KV_fairlead-leases.$KV.fairlead-leases.c.1", pub},
		{"$JS.API.DIRECT.GET.fairlead-journal", pub},
		{"$JS.API.STREAM.MSG.GET.KV_fairlead-leases", pub},
		{"$JS.API.STREAM.CREATE.fairlead-journal", pub},
		{"$JS.API.CONSUMER.CREATE.fairlead-journal", pub},
		{"$JS.API.STREAM.DELETE.fairlead-journal", no},
		{"$JS.API.STREAM.DELETE.KV_fairlead-leases", no},
		{"$JS.API.STREAM.PURGE.fairlead-journal", no},
		{"$JS.API.STREAM.PURGE.KV_fairlead-leases", no},
		{"$JS.API.STREAM.MSG.DELETE.fairlead-journal", no},
		{"$JS.API.STREAM.MSG.DELETE.KV_fairlead-leases", no},
		{"$JS.API.STREAM.RESTORE.fairlead-journal", no},
		{"$JS.API.STREAM.RESTORE.KV_fairlead-leases", no},
		{"$JS.API.STREAM.PURGE.OBJ_fairlead-journal-snapshots", pub},
		{"$JS.API.STREAM.LEADER.STEPDOWN.fairlead-journal", pub},
		{"$JS.API.ACCOUNT.PURGE.x", no},
		{"$JS.API.SERVER.REMOVE", no},
		{"$JS.ACK.fairlead-journal.x", pub},
		{"$SYS.REQ.SERVER.PING", no},
		{"fairlead.>", no},
		{"fairlead.host.*.event", no},
		{"$KV.>", no},
		{"_INBOX.>", no},
		{">", no},
		{"x", no},
	} {
		if got := tries(t, nc, row.subject); got != row.want {
			t.Errorf("%s: %s, want %s", row.subject, got, row.want)
		}
	}
	if p := (cluster.Member{Name: "c", Role: cluster.Host}).Permissions(); len(p.Publish)+len(p.Subscribe) > 0 {
		t.Errorf("a host that is no engine host may use %v", p)
	}
}

// tries publishes and subscribes, and returns what the server allowed.
func tries(t *testing.T, nc *nats.Conn, subject string) string {
	t.Helper()
	denied := func(what string, do func() error) bool {
		err := do()
		if err := nc.Flush(); err != nil { // the server has answered to everything before
			t.Fatal(err)
		}
		return err != nil || strings.Contains(fmt.Sprint(nc.LastError()), fmt.Sprintf("for %s to %q", what, subject))
	}
	got := []byte("ps")
	if denied("Publish", func() error { return nc.Publish(subject, nil) }) {
		got[0] = '-'
	}
	if denied("Subscription", func() error { _, err := nc.SubscribeSync(subject); return err }) {
		got[1] = '-'
	}
	return string(got)
}

// A removed host is out at once: its connection is closed, and no other one is taken. So is a host whose key or
// role has changed.
func TestRemovedHost(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	n := f.start(f.options(f.host("a", cluster.Engine)))
	stays, _ := f.connect(f.host("c", cluster.Engine), n.Address())
	changes := map[string]func(m cluster.Member){
		"removed":      func(m cluster.Member) { f.remove(m.Name) },
		"joined-anew":  func(m cluster.Member) { m.Key = strings.Repeat("U", 56); f.set(m.Name, m) },
		"other-role":   func(m cluster.Member) { m.Role = cluster.Host; f.set(m.Name, m) },
		"another-name": func(m cluster.Member) { f.set(m.Name, cluster.Member{Name: "x", Role: m.Role, Key: m.Key}) },
	}
	ids, ends := map[string]*ca.Identity{}, map[string]chan error{}
	for name := range changes {
		ids[name] = f.host(name, cluster.Engine)
		_, ends[name] = f.connect(ids[name], n.Address())
	}
	for name, change := range changes {
		m, _ := f.Member(name)
		change(m)
	}
	if err := n.Recheck(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, id := range ids {
		if err := wait.For(t, "the end of the connection", ends[name]); !errors.Is(err, ErrRefused) { // its tries to come back fail, too
			t.Errorf("%s: %v", name, err)
		}
		_, err := connectFrom(t.Context(), id, []string{n.Address()}, f.log, func(error) {})
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "it needs a new invitation") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if stays.Stats().Reconnects != 0 || !stays.IsConnected() {
		t.Error("the connection of a member was closed")
	}
}

// TestBadConnections is the table of hosts and servers that do not fit.
func TestBadConnections(t *testing.T) {
	t.Parallel()
	f, same, other := newTeam(t, "web"), newTeam(t, "web"), newTeam(t, "shop")
	n := f.start(f.options(f.host("a", cluster.Engine)))
	twin := same.start(same.options(same.host("a", cluster.Engine)))
	shop := other.start(other.options(other.host("a", cluster.Engine)))
	small := smallServer(t, f.host("s", cluster.Engine))
	id := f.host("b", cluster.Engine)
	local := func(n *Node) string { return strings.Replace(n.Address(), "127.0.0.1", "localhost", 1) }
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	for want, address := range map[string]string{
		"":                               n.Address(),
		`not for "localhost"`:            local(n),
		"also called web":                twin.Address(),
		"may be the wrong server":        shop.Address(),
		"set max_payload to 8388608":     small,
		"check that the other hosts run": "tls://" + taken.Addr().String(),
	} {
		nc, err := connectFrom(t.Context(), id, []string{address}, f.log, func(error) {})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
		if err == nil {
			nc.Close()
		}
	}
	f.mu.Lock()
	f.at = f.at.AddDate(-6, 0, 0)
	f.mu.Unlock()
	if _, err := connectFrom(t.Context(), id, []string{n.Address()}, f.log, func(error) {}); err == nil ||
		!strings.Contains(err.Error(), "set the clock right") {
		t.Error("a clock that is years behind:", err)
	}
	if _, err := Start(t.Context(), f.options(id)); err == nil {
		t.Error("a server starts years behind")
	}
}

// smallServer is a foreign NATS server with the default size of messages.
func smallServer(t *testing.T, id *ca.Identity) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, TLS: true, TLSHandshakeFirst: true, TLSConfig: id.TLS(nil),
		AlwaysEnableNonce: true, NoSigs: true, NoLog: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Shutdown)
	wait.Until(t, "the server", func() bool { return s.ReadyForConnections(time.Millisecond) })
	return "tls://" + s.Addr().String()
}

// TestForgedConnections shows half of a host's proof.
func TestForgedConnections(t *testing.T) {
	t.Parallel()
	f, other := newTeam(t, "web"), newTeam(t, "shop")
	n := f.start(f.options(f.host("a", cluster.Engine)))
	b, c, foreign, w := f.host("b", cluster.Engine), f.host("c", cluster.Engine), other.host("b", cluster.Engine), f.host("w", cluster.Host)
	none := b.TLS(nil)
	none.GetClientCertificate = nil
	plain := func() *tls.Config { return b.TLS(nil) }
	half := foreign.TLS(nil)
	half.RootCAs = b.TLS(nil).RootCAs
	for name, c := range map[string]struct {
		config *tls.Config
		more   []nats.Option
	}{
		"no engine host":     {w.TLS(nil), []nats.Option{nats.Nkey(w.PublicKey(), w.SignNonce)}},
		"another host's key": {plain(), []nats.Option{nats.Nkey(c.PublicKey(), c.SignNonce)}},
		"another signature":  {plain(), []nats.Option{nats.Nkey(b.PublicKey(), c.SignNonce)}},
		"a signature of other bytes": {
			plain(),
			[]nats.Option{nats.Nkey(b.PublicKey(), func([]byte) ([]byte, error) { return b.SignNonce([]byte("x")) })},
		},
		"no key":                     {plain(), nil},
		"a password":                 {plain(), []nats.Option{nats.UserInfo("b", "b")}},
		"another host's certificate": {c.TLS(nil), []nats.Option{nats.Nkey(b.PublicKey(), b.SignNonce)}},
		"no certificate":             {none, []nats.Option{nats.Nkey(b.PublicKey(), b.SignNonce)}},
		"another team's certificate": {half, []nats.Option{nats.Nkey(b.PublicKey(), b.SignNonce)}},
		"no TLS":                     {nil, []nats.Option{nats.Nkey(b.PublicKey(), b.SignNonce)}},
	} {
		address, more := n.Address(), append(c.more, nats.MaxReconnects(0))
		if c.config != nil {
			more = append(more, nats.Secure(c.config), nats.TLSHandshakeFirst())
		} else {
			address = strings.Replace(address, "tls://", "nats://", 1)
			more = append(more, nats.Timeout(100*time.Millisecond)) // it waits for a greeting that does not come
		}
		if nc, err := nats.Connect(address, more...); err == nil {
			nc.Close()
			t.Errorf("%s is taken", name)
		}
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	a, b := f.host("a", cluster.Engine), f.host("b", cluster.Host)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().String()
	for want, edit := range map[string]func(*Options){
		"choose another port":                    func(o *Options) { o.Address = port },
		"listen for the hosts of the team":       func(o *Options) { o.Routes = &Routes{Address: port} },
		"the disk is full":                       func(o *Options) { o.free = func(string) (uint64, error) { return freeMin - 1, nil } },
		"invitation that was made with --engine": func(o *Options) { o.Identity = b },
		"Can't start JetStream": func(o *Options) { // a file is in the place of the store
			if err := errors.Join(os.MkdirAll(o.Dir, 0o700), os.WriteFile(filepath.Join(o.Dir, "store"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		},
		"missing port": func(o *Options) { o.Address = "127.0.0.1" },
	} {
		o := f.options(a)
		edit(&o)
		n, err := Start(t.Context(), o)
		if err == nil {
			_ = n.Stop(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if left, err := free(t.TempDir()); err != nil || left == 0 {
		t.Error(left, err)
	}
}

var _ jetstream.Node = (*Node)(nil)

// The journal of a team works with the permissions of an engine host, also for one without the server in its process.
func TestJournalOnNode(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	n := f.start(f.options(f.host("a", cluster.Engine)))
	nc, _ := f.connect(f.host("b", cluster.Engine), n.Address())
	if err := jetstream.Create(t.Context(), nc, cluster.JournalStream, 1); err != nil {
		t.Fatal(err)
	}
	j, err := jetstream.Open(t.Context(), nc,
		jetstream.Options{Stream: cluster.JournalStream, Mirror: filepath.Join(t.TempDir(), "mirror.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for range journal.SnapshotsKept + 1 { // the last one replaces the first
		seq, err := j.Append(t.Context(),
			[]journal.Change{{
				Time: f.now().UTC(), Machine: "team", Entity: "team/web", Row: "X1", From: "a", To: "b", Trigger: "x",
				Actor: change.Actor{Kind: "human", ID: "ann"},
			}})
		if err != nil {
			t.Fatal(err)
		}
		_, hash, err := j.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: seq, Hash: hash, Format: "1", Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	js, err := natsjs.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(shortly(t), cluster.JournalStream); err == nil {
		t.Error("a message deletes the journal")
	}
	if seq, _, err := j.Head(t.Context()); err != nil || seq != journal.SnapshotsKept+1 {
		t.Error(seq, err)
	}
}

// shortly is for a request that the server does not answer.
func shortly(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// A host is invited, joins and connects.
func TestJoinAndConnect(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	own := f.host("a", cluster.Engine)
	n := f.start(f.options(own))
	book, err := invite.OpenStore(filepath.Join(t.TempDir(), "invitations.json"), f.now)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	token, err := book.Invite("human/ann", cluster.Engine, nil, l.Addr().String(), f.authority)
	if err != nil {
		t.Fatal(err)
	}
	joins := &invite.Server{
		Store: book, Authority: f.authority, Members: f, Servers: []string{n.Address()}, Now: f.now, Log: f.log,
		Admit: func(_ context.Context, j invite.Joiner) error {
			f.set(j.Name, j.Member)
			return nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- joins.Serve(ctx, l, own.JoinTLS()) }()
	id, err := ca.NewIdentity(t.TempDir(), "b", f.now)
	if err != nil {
		t.Fatal(err)
	}
	joined, err := invite.Join(t.Context(), token, id, "127.0.0.1:4222", f.now)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := wait.For(t, "the end of the listener", done); err != nil {
		t.Error(err)
	}
	if nc, _ := f.connect(id, joined.Servers[0]); !nc.IsConnected() {
		t.Error("the host is not connected")
	}
}

// connectFrom connects an engine host to servers of the team, as a hub does, but from outside of its process.
func connectFrom(ctx context.Context, id *ca.Identity, servers []string, log *slog.Logger, ended func(error)) (*nats.Conn, error) {
	return connect(ctx, id, strings.Join(servers, ","), log, ended, nats.Secure(id.TLS(nil)), nats.TLSHandshakeFirst())
}
