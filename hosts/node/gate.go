package node

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/ca"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// gate decides about every connection, and remembers those that it admitted.
type gate struct {
	own     string // the name of this host
	members cluster.Members

	mu      sync.Mutex
	clients map[uint64]cluster.Member   // by the id of the connection
	routes  map[net.Conn]cluster.Member // those that other servers made
	dialled map[string]bool             // engine hosts that this server has connected to since it started
}

func newGate(own string, members cluster.Members) *gate {
	return &gate{
		own: own, members: members, clients: map[uint64]cluster.Member{}, routes: map[net.Conn]cluster.Member{},
		dialled: map[string]bool{},
	}
}

// clientGate is the gate as the server asks it.
type clientGate struct {
	*gate
	server *server.Server
}

// Check admits a client or refuses it. The look at the membership and the note of the connection are one step for
// [gate.leaving], so no connection slips between the two.
func (g *clientGate) Check(c server.ClientAuthentication) bool {
	if c.Kind() != server.CLIENT {
		return false
	}
	name, system := g.own, false
	if state := c.GetTLSConnectionState(); state != nil {
		name = ca.PeerName(*state)
	} else if c.RemoteAddress() == nil || c.RemoteAddress().Network() != "pipe" {
		return false
	} else {
		system = c.GetOpts().Name == systemClient
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m, ok := g.members.Member(name)
	if !ok || m.Name != name || m.Role != cluster.Engine || !signed(m.Key, c) {
		return false
	}
	for id := range g.clients {
		if g.server.GetClient(id) == nil {
			delete(g.clients, id)
		}
	}
	g.clients[c.GetID()] = m
	if system {
		c.RegisterUser(&server.User{Username: name, Account: g.server.SystemAccount()})
		return true
	}
	c.RegisterUser(&server.User{Username: name, Permissions: permissions(m)})
	return true
}

// signed reports whether a client has signed the server's challenge with a key.
func signed(key string, c server.ClientAuthentication) bool {
	signature, err := base64.RawURLEncoding.DecodeString(c.GetOpts().Sig)
	if err != nil || len(c.GetNonce()) == 0 {
		return false
	}
	public, err := nkeys.FromPublicKey(key)
	return err == nil && public.Verify(c.GetNonce(), signature) == nil
}

func permissions(m cluster.Member) *server.Permissions {
	p := m.Permissions()
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: p.Publish, Deny: p.NoPublish},
		Subscribe: &server.SubjectPermission{Allow: p.Subscribe},
	}
}

// dial notes a server that this one connects to, if that is one of the team. TLS asks it.
func (g *gate) dial(name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.engine(name)
	if err == nil {
		g.dialled[name] = true
	}
	return err
}

// engine reports a peer that is no other engine host of the team.
func (g *gate) engine(name string) error {
	if m, ok := g.members.Member(name); !ok || m.Role != cluster.Engine || name == g.own {
		return fmt.Errorf("%q is no other engine host of the team", name)
	}
	return nil
}

// routeTLS makes a configuration note the connections that other servers make.
func (g *gate) routeTLS(config *tls.Config) *tls.Config {
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		c := config.Clone()
		c.GetConfigForClient = nil
		c.VerifyConnection = func(state tls.ConnectionState) error {
			g.mu.Lock()
			defer g.mu.Unlock()
			name := ca.PeerName(state)
			if err := g.engine(name); err != nil {
				return err
			}
			m, _ := g.members.Member(name)
			for conn := range g.routes {
				if _, err := conn.Write(nil); errors.Is(err, net.ErrClosed) {
					delete(g.routes, conn)
				}
			}
			g.routes[hello.Conn] = m
			return nil
		}
		return c, nil
	}
	return config
}

// leaving returns the connections of hosts that do not belong to the team as they did when they connected. dialled
// are the hosts that this server has connected to itself.
func (g *gate) leaving() (clients []uint64, routes []net.Conn, dialled []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, was := range g.clients {
		if m, ok := g.members.Member(was.Name); !ok || m != was {
			clients = append(clients, id)
			delete(g.clients, id)
		}
	}
	for conn, was := range g.routes {
		if m, ok := g.members.Member(was.Name); !ok || m != was {
			routes = append(routes, conn)
			delete(g.routes, conn)
		}
	}
	for name := range g.dialled {
		if g.engine(name) != nil {
			dialled = append(dialled, name)
		}
	}
	return clients, routes, dialled
}

// forget forgets all connections: the server has ended.
func (g *gate) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.clients)
	clear(g.routes)
	clear(g.dialled)
}
