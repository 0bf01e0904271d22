package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/internal/file"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"
)

const (
	freeMin     = 256 << 20        // bytes that must be free on the disk at a start
	startWithin = 30 * time.Second // a large stream is read before the server answers
	// between two pings of servers; by default a server that is gone without a word is noticed after a minute and a half
	routePing  = 2 * time.Second
	routePings = 2   // without an answer; then the connection is closed
	clientsMax = 128 // connections of engine hosts, which are few
)

// Options say how a node starts.
type Options struct {
	Identity *ca.Identity
	Members  cluster.Members
	Dir      string // of the store
	Address  string // host:port for hosts; port 0: one that is free
	Routes   *Routes
	StoreMax int64 // bytes; 0: as much as the disk has
	Log      *slog.Logger

	Check func(store string) error // what is damaged in it. It is asked before each start; a server with a damaged store runs without it

	free func(dir string) (uint64, error)
}

// Routes connect the servers of several engine hosts.
type Routes struct {
	Address string // host:port for other servers
	Others  []Peer
}

// Peer is another engine host.
type Peer struct{ Name, Address string }

// Node is a running server. Use Start.
type Node struct {
	o    Options
	gate *gate

	mu      sync.Mutex
	bare    bool  // it runs without its store
	failed  bool  // it should run, and its last start failed
	damaged error // why it runs without its store though it should have it
	server  *server.Server
	client  net.Addr // where hosts connect
	route   net.Addr
}

// Start starts the server of an engine host, and returns when it takes connections.
func Start(ctx context.Context, o Options) (*Node, error) {
	if m, ok := o.Members.Member(o.Identity.Name); !ok || m.Role != cluster.Engine {
		return nil, fmt.Errorf("host %s is no engine host of team %s; join with an invitation that was made with --engine", o.Identity.Name,
			o.Identity.Team())
	}
	if err := o.Identity.CheckClock(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, ca.Explain(fmt.Errorf("make the folder of the journal's server: %w", err), "", time.Time{})
	}
	if o.free == nil {
		o.free = free
	}
	n := &Node{o: o, gate: newGate(o.Identity.Name, o.Members)}
	if err := n.room(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n, n.start(ctx)
}

// room reports a disk that is too full for the server.
func (n *Node) room() error {
	left, err := n.o.free(n.o.Dir)
	if err == nil && left >= freeMin {
		return nil
	}
	return fmt.Errorf("start the server of host %s: %s is free in %s, and it needs %s: %w", n.o.Identity.Name, file.Size(int64(left)),
		n.o.Dir, file.Size(freeMin), //nolint:gosec // a disk has less than 8 EiB
		cmp.Or(err, ca.Explain(syscall.ENOSPC, "", time.Time{})))
}

// Storeless reports whether the server should have its store, and has not: it gave it up, as when the disk was full, its last start failed,
// or its store is damaged.
func (n *Node) Storeless() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failed || !n.bare && n.server.Running() && !n.server.JetStreamEnabled()
}

// Damage is what was damaged in the store when the server last started with it; nil: nothing.
func (n *Node) Damage() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.damaged
}

// ErrStoreless says that the server has no store now.
var ErrStoreless = errors.New("the server of this host has no store now")

// Joined reports whether the server works in a group of servers.
func (n *Node) Joined(group string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	is := n.server.Raftz(&server.RaftzOptions{AccountFilter: server.DEFAULT_GLOBAL_ACCOUNT, GroupFilter: group})
	if is == nil {
		return false
	}
	_, ok := (*is)[server.DEFAULT_GLOBAL_ACCOUNT][group]
	return ok
}

// Revive restarts a server without its store, if the disk has room.
func (n *Node) Revive(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.room(); err != nil {
		return err
	}
	n.stop()
	return n.start(ctx)
}

// free is how many bytes this user can still write.
func free(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil //nolint:gosec // the size of a block is positive
}

// start starts a server on the addresses that the node has.
func (n *Node) start(ctx context.Context) (err error) {
	defer func() { n.failed = err != nil }()
	if !n.bare && n.o.Check != nil {
		n.damaged = n.o.Check(n.Store())
	}
	opts, err := n.options()
	if err != nil {
		return err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("start the server of host %s: %w", n.o.Identity.Name, err)
	}
	opts.CustomClientAuthentication.(*clientGate).server = s //nolint:forcetypeassert // options has set it
	log := &logger{log: n.o.Log.With("server", n.o.Identity.Name)}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	for late := time.Now().Add(startWithin); !s.ReadyForConnections(50 * time.Millisecond); {
		if err := cmp.Or(log.fatal(), ctx.Err()); err != nil || time.Now().After(late) {
			s.Shutdown()
			return fmt.Errorf("start the server of host %s: %w", n.o.Identity.Name,
				cmp.Or(err, errors.New("it does not answer; see the log")))
		}
	}
	if err := log.started(); err != nil {
		s.Shutdown()
		return fmt.Errorf("start the server of host %s: %w", n.o.Identity.Name, err)
	}
	n.server, n.client, n.route = s, s.Addr(), s.ClusterAddr()
	return nil
}

// WithoutStore restarts the server without its store, so that this process still reaches those of other engine hosts and the files of the
// store can be removed. Start gives it the store again.
func (n *Node) WithoutStore(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bare = true
	n.stop()
	return n.start(ctx)
}

// options are those of the server. A port that was chosen once is kept.
func (n *Node) options() (*server.Options, error) {
	id := n.o.Identity
	opts := &server.Options{
		ServerName:                 id.Name,
		MaxPayload:                 cluster.PayloadMax,
		MaxConn:                    clientsMax,
		JetStream:                  !n.bare && n.damaged == nil,
		StoreDir:                   n.Store(),
		SyncAlways:                 true,
		JetStreamMaxStore:          n.o.StoreMax,
		DisableJetStreamBanner:     true,
		NoSigs:                     true,
		AlwaysEnableNonce:          true,
		TLS:                        true,
		TLSVerify:                  true,
		TLSHandshakeFirst:          true,
		TLSConfig:                  id.TLS(nil),
		CustomClientAuthentication: &clientGate{gate: n.gate},
	}
	var err error
	if opts.Host, opts.Port, err = listenOn(n.o.Address, n.client); err != nil {
		return nil, err
	}
	if n.o.Routes == nil {
		return opts, nil
	}
	// Two teams never share the name, as it has the authority's fingerprint.
	opts.Cluster.Name = id.Team() + "-" + id.Authority()[:16]
	opts.Cluster.TLSConfig = n.gate.routeTLS(id.TLS(n.gate.dial))
	opts.Cluster.PingInterval, opts.Cluster.MaxPingsOut = routePing, routePings
	opts.Cluster.TLSTimeout = server.DEFAULT_ROUTE_DIAL.Seconds()
	if opts.Cluster.Host, opts.Cluster.Port, err = listenOn(n.o.Routes.Address, n.route); err != nil {
		return nil, err
	}
	for _, peer := range n.o.Routes.Others {
		if n.gate.engine(peer.Name) == nil {
			opts.Routes = append(opts.Routes, &url.URL{Scheme: "tls", Host: peer.Address})
		}
	}
	if len(opts.Routes) == 0 { // the server wants one; it ignores a route to itself
		opts.Routes = append(opts.Routes,
			&url.URL{Scheme: "tls", Host: net.JoinHostPort(opts.Cluster.Host, strconv.Itoa(opts.Cluster.Port))})
	}
	return opts, nil
}

// listenOn checks that an address can be listened on. was is the one of before a restart.
func listenOn(address string, was net.Addr) (name string, port int, err error) {
	if was != nil {
		address = was.String()
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", 0, ca.Explain(fmt.Errorf("listen for the hosts of the team: %w", err), "", time.Time{})
	}
	name, text, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", 0, err
	}
	port, err = strconv.Atoi(text)
	return name, port, errors.Join(err, l.Close())
}

// Address is where hosts connect: tls://host:port.
func (n *Node) Address() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return "tls://" + n.client.String()
}

// RouteAddress is where other servers connect: host:port.
func (n *Node) RouteAddress() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.route.String()
}

// InProcessConn is a connection of this process to the server, without a port. Connect uses it.
func (n *Node) InProcessConn() (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server.InProcessConn()
}

// Peers are the names of the servers that this one is connected to.
func (n *Node) Peers() ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.peers()
}

func (n *Node) peers() ([]string, error) {
	routes, err := n.server.Routez(nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range routes.Routes {
		names = append(names, r.RemoteName)
	}
	return names, nil
}

// Recheck closes the connections of hosts whose membership has changed. Call it after each change. A connection
// that this server has made to another one cannot be closed alone, so the server restarts without it. A server whose last start
// failed is started again.
func (n *Node) Recheck(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failed {
		return n.start(ctx)
	}
	if !n.server.Running() {
		return nil
	}
	clients, routes, dialled := n.gate.leaving()
	for _, id := range clients {
		_ = n.server.DisconnectClientByID(id) // it may have ended meanwhile
	}
	for _, conn := range routes {
		conn.Close()
	}
	names, err := n.peers()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(dialled, func(name string) bool { return slices.Contains(names, name) }) {
		return nil // it is not connected, and cannot be again
	}
	n.o.Log.Info("the server restarts, because an engine host was removed", "hosts", dialled)
	n.stop()
	return n.start(ctx)
}

// Name is the name of the server, which is that of its host.
func (n *Node) Name() string { return n.o.Identity.Name }

// Store is the folder in which the server keeps its streams.
func (n *Node) Store() string { return StoreIn(n.o.Dir) }

// StoreIn is the folder of the streams of a server whose Options have a Dir.
func StoreIn(dir string) string { return filepath.Join(dir, "store") }

// Stop ends the server, and returns when it has ended.
func (n *Node) Stop(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stop()
	return nil
}

// Start starts the server again after Stop or WithoutStore, at the same addresses.
func (n *Node) Start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.server.Running() {
		n.stop()
	}
	n.bare = false
	return n.start(ctx)
}

func (n *Node) stop() {
	n.failed = false
	n.server.Shutdown()
	n.server.WaitForShutdown()
	n.gate.forget()
}
