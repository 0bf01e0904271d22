package node

import (
	"crypto/tls"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/lease"
	"github.com/fairlead-dev/fairlead/internal/test/wait"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Servers connect to those of other engine hosts only. When one is removed, its connections end on both sides, and
// none comes back.
func TestRoutes(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	o := f.options(f.host("a", cluster.Engine))
	o.Routes = &Routes{Address: "127.0.0.1:0"}
	a := f.start(o)
	o = f.options(f.host("b", cluster.Engine))
	o.Routes = &Routes{Address: "127.0.0.1:0", Others: []Peer{{"a", a.RouteAddress()}}}
	b := f.start(o)
	peers := func(n *Node) []string {
		names, err := n.Peers()
		if err != nil {
			t.Error(err)
		}
		return slices.Compact(slices.Sorted(slices.Values(names)))
	}
	linked := func(yes bool) func() bool {
		return func() bool { return slices.Contains(peers(a), "b") == yes && slices.Contains(peers(b), "a") == yes }
	}
	wait.Until(t, "a connection of two servers", linked(true))
	crossTalk(t, f, a, b)
	was := b.Address()

	for name, id := range map[string]*ca.Identity{"a plain host": f.host("w", cluster.Host), "a removed one": f.host("r", cluster.Engine)} {
		if name == "a removed one" {
			f.remove("r")
		}
		conn, err := net.Dial("tcp", a.RouteAddress())
		if err != nil {
			t.Fatal(err)
		}
		config := id.TLS(nil)
		config.ServerName = "a"
		tlsConn := tls.Client(conn, config)
		_ = conn.SetDeadline(time.Now().Add(wait.Patience))
		if err := tlsConn.Handshake(); err == nil {
			if _, err = tlsConn.Read(make([]byte, 1)); err == nil {
				t.Errorf("%s is taken for a server", name)
			}
		}
		conn.Close()
	}

	f.remove("b") // a has accepted it
	if err := a.Recheck(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the end of the connection", linked(false))
	f.host("b2", cluster.Engine)
	o.Identity = f.host("b3", cluster.Engine)
	o.Dir = filepath.Join(t.TempDir(), "nats")
	c := f.start(o)
	wait.Until(t, "a connection that c makes", func() bool { return slices.Contains(peers(c), "a") })
	address := c.Address()
	f.remove("a") // c has made the connection
	if err := c.Recheck(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(peers(c)) > 0 || c.Address() != address || was == "" {
		t.Errorf("after the removal of a: %v, %s", peers(c), c.Address())
	}
	nc, err := c.Connect(t.Context(), func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

// crossTalk makes a bucket on one server and finds it on the other.
func crossTalk(t *testing.T, f *team, a, b *Node) {
	t.Helper()
	own, err := a.Connect(t.Context(), func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	nc, _ := f.connect(f.host("far", cluster.Engine), b.Address())
	defer nc.Close()
	js := func(nc *nats.Conn) jetstream.JetStream {
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		return js
	}
	wait.Until(t, "a bucket that two servers elected a leader for", func() bool {
		_, err := lease.Open(t.Context(), js(own), 2)
		return err == nil
	})
	wait.Until(t, "the bucket on the other server", func() bool {
		_, err := lease.Open(t.Context(), js(nc), 2)
		return err == nil
	})
}

// A server that falls silent, on a connection that stays open, is left after 3 s for another one.
func TestFrozenServer(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	n := f.start(f.options(f.host("a", cluster.Engine)))
	address := strings.TrimPrefix(n.Address(), "tls://")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var frozen atomic.Bool
	pump := func(to, from net.Conn) {
		b := make([]byte, 64<<10)
		for {
			k, err := from.Read(b)
			if err != nil {
				to.Close()
				return
			}
			if !frozen.Load() {
				_, _ = to.Write(b[:k])
			}
		}
	}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", address)
			if err != nil {
				near.Close()
				return
			}
			go pump(near, far)
			go pump(far, near)
		}
	}()
	nc, err := connectFrom(t.Context(), f.host("b", cluster.Engine), []string{"tls://" + l.Addr().String()}, f.log, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.SetServerPool([]string{"tls://" + l.Addr().String(), n.Address()}); err != nil {
		t.Fatal(err)
	}
	frozen.Store(true)
	wait.Until(t, "the connection to the other address", func() bool { return nc.ConnectedAddr() == address && nc.IsConnected() })
}

// The name that a server has in its group follows from its own.
func TestNodeID(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	n := f.start(f.options(f.host("b", cluster.Engine)))
	if got, want := nodeID("b"), n.server.Node(); got != want {
		t.Errorf("%s, and the server says %s", got, want)
	}
}

// A server that could not start again, because another program had its port, is started when it is looked at the next time. One that was
// stopped is not.
func TestRecheckAfterAFailedStart(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	o := f.options(f.host("b", cluster.Engine))
	o.Routes = &Routes{Address: "127.0.0.1:0"}
	n := f.start(o)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	n.route = other.Addr()
	if err := n.WithoutStore(t.Context()); err == nil {
		t.Fatal("two programs listen on one port")
	}
	if err := n.Start(t.Context()); err == nil || n.server.Running() {
		t.Fatal("two programs listen on one port")
	}
	other.Close()
	if err := n.Recheck(t.Context()); err != nil || !n.server.Running() || !n.server.JetStreamEnabled() {
		t.Errorf("it runs: %t, with its store: %t, %v", n.server.Running(), n.server.JetStreamEnabled(), err)
	}
	if err := errors.Join(n.Stop(t.Context()), n.Recheck(t.Context())); err != nil || n.server.Running() {
		t.Errorf("after its end it runs: %t, %v", n.server.Running(), err)
	}
}
