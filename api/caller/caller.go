package caller

import (
	"context"
	"net"
	"sync"

	"github.com/fairlead-dev/fairlead/process/shim"
)

// Caller is the peer of a connection: the process, and the Fairlead session that it runs in. Who is zero if
// its PID is not known.
type Caller shim.Origin

// Conn is a connection over the unix socket with the caller that made it.
type Conn struct {
	net.Conn
	Caller
	own  bool   // through the session's own socket, which says who it is
	left func() // what the end of the connection frees; nil: nothing
}

// Close closes the connection.
func (c *Conn) Close() error {
	if c.left != nil {
		c.left()
	}
	return c.Conn.Close()
}

// Inspect identifies the process that made a connection, which may have ended or have passed the connection to another one.
func Inspect(c *net.UnixConn, dir string) *Conn {
	return &Conn{Conn: c, Caller: Caller(shim.PeerCaller(dir, c))}
}

// Identity returns what the controllers' rules need. They decide what the caller may do.
func (c Caller) Identity() Identity {
	seen := c.Who.PID != 0
	unknown := c.Unseen
	if seen { // a process that has ended may have passed the connection to another one
		now, is := shim.BirthOf(c.Who.PID)
		unknown = unknown || !is || now != c.Who
	}
	return Identity{Session: c.Session, Foreign: c.Foreign, Unknown: unknown, Seen: seen}
}

type key struct{}

// record is how a context finds out who made a request.
type record struct {
	who      func() Caller
	identity func(Caller) Identity
}

func (r record) in(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, r) }

func recordOf(seen func() Caller) record { return record{seen, Caller.Identity} }

// With records who made a request.
func With(ctx context.Context, c Caller) context.Context {
	return recordOf(func() Caller { return c }).in(ctx)
}

// WithIdentity records the caller of a request as another host has seen it. It has no process on this machine.
func WithIdentity(ctx context.Context, is Identity) context.Context {
	who := Caller{Session: is.Session, Foreign: is.Foreign, Unseen: is.Unknown}
	return record{func() Caller { return who }, func(Caller) Identity { return is }}.in(ctx)
}

// WithConn records who is at the other end of a connection; dir is the repository, in the form that shims use.
// A wrapped connection has a method NetConn, as that of TLS has.
func WithConn(ctx context.Context, c net.Conn, dir string) context.Context {
	for {
		outer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = outer.NetConn()
	}
	if is, ok := c.(*Conn); ok && is.own {
		return WithIdentity(ctx, Identity{Session: is.Session, Own: true})
	} else if ok {
		return With(ctx, is.Caller)
	}
	if port := overTCP(c, dir); port != nil {
		return recordOf(port.seen).in(ctx)
	}
	return ctx
}

// Once makes a request look up its caller and its identity at most once: over TCP each look-up reads every process, and over
// the socket the caller's own entry in the process table.
func Once(ctx context.Context) context.Context {
	if r, ok := ctx.Value(key{}).(record); ok {
		who := sync.OnceValue(r.who)
		identity := sync.OnceValue(func() Identity { return r.identity(who()) })
		return record{who, func(Caller) Identity { return identity() }}.in(ctx)
	}
	return ctx
}

// In returns the caller of a request. Without a record it is in no session.
func In(ctx context.Context) Caller {
	if r, ok := ctx.Value(key{}).(record); ok {
		return r.who()
	}
	return Caller{}
}

// IdentityIn returns the identity of the caller of a request; see [Caller.Identity].
func IdentityIn(ctx context.Context) Identity {
	if r, ok := ctx.Value(key{}).(record); ok {
		return r.identity(r.who())
	}
	return Caller{}.Identity()
}
