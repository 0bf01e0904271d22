package server

import (
	"context"
	"net"

	"github.com/fairlead-dev/fairlead/api/peer"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/shim"
)

// caller is the peer of a connection: the process, and the Fairlead session that it runs in.
type caller struct {
	net.Conn
	session string     // empty: in none
	who     shim.Birth // the process that connected; zero if its PID is not known
	unseen  bool       // it could not be inspected: it is gone, or its ancestors changed during each attempt

	port *viaTCP // it connected over TCP and is inspected only when an order needs it
}

// callerOf identifies the peer as soon as it connects, because a PID can be reused later. A peer
// without a PID is in no namespace of this process, so it is not a child of Fairlead.
func callerOf(c *net.UnixConn, dir string) *caller {
	is := &caller{Conn: c}
	pid, err := peer.PID(c)
	if err != nil || pid <= 0 {
		return is
	}
	is.session, is.who, is.unseen = shim.Caller(dir, pid)
	return is
}

// gone reports whether the process that connected has ended. It may have passed the connection to
// another process, so the caller is unknown then.
func (c caller) gone() bool {
	if c.who.PID == 0 {
		return false
	}
	now, is := shim.BirthOf(c.who.PID)
	return !is || now != c.who
}

// unknown reports that Fairlead cannot tell whether the caller is an agent.
func (c caller) unknown() bool { return c.unseen || c.gone() }

// nobodySeen is the actor's name if the caller could not be inspected. No agent can have this name.
const nobodySeen = "(not seen)"

type callerKey struct{}

// withCaller is an http.Server's ConnContext.
func (s *Server) withCaller(ctx context.Context, c net.Conn) context.Context {
	if in, ok := c.(*counted); ok {
		c = in.Conn
	}
	if is, ok := c.(*caller); ok {
		return context.WithValue(ctx, callerKey{}, is)
	}
	if port := portCaller(c, s.repository()); port != nil {
		return context.WithValue(ctx, callerKey{}, &caller{Conn: c, port: port})
	}
	return ctx
}

// repository returns the folder in the form that shims use.
func (s *Server) repository() string {
	if dir, err := realDir(s.opts.Dir); err == nil {
		return dir
	}
	return s.opts.Dir
}

func callerIn(ctx context.Context) caller {
	if is, ok := ctx.Value(callerKey{}).(*caller); ok {
		if is.port != nil {
			return is.port.seen()
		}
		return *is
	}
	return caller{}
}

// identity returns what is known of the caller of a request. The controllers' rules decide what it may do.
func identity(ctx context.Context) seam.Caller {
	c := callerIn(ctx)
	return seam.Caller{Session: c.session, Unknown: c.unknown(), Seen: c.who.PID != 0}
}
