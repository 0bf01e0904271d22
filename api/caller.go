package api

import (
	"context"
	"net"
	"strings"

	"github.com/fairlead-dev/fairlead/holder"
	"github.com/fairlead-dev/fairlead/machine"
)

// caller is a connection over the socket, and in which session of ours its other end runs.
type caller struct {
	net.Conn
	session string // empty: in none
	unseen  bool   // the process that connected had gone before it could be looked at
}

// callerOf looks who connected, as soon as the connection is there: a number of a process
// is used again. One without a number is in none of our own namespaces, so it is no child of ours.
func callerOf(c *net.UnixConn, dir string) *caller {
	is := &caller{Conn: c}
	pid, err := peerPID(c)
	if err != nil || pid <= 0 {
		return is
	}
	if session, ok := holder.SessionOf(dir, pid); ok {
		is.session = session
		return is
	}
	is.unseen = holder.LifeOf(pid, 0) == holder.Gone
	return is
}

type callerKey struct{}

// withCaller is an http.Server's ConnContext.
func withCaller(ctx context.Context, c net.Conn) context.Context {
	if in, ok := c.(*counted); ok {
		c = in.Conn
	}
	if is, ok := c.(*caller); ok {
		return context.WithValue(ctx, callerKey{}, is)
	}
	return ctx
}

func callerIn(ctx context.Context) caller {
	if is, ok := ctx.Value(callerKey{}).(*caller); ok {
		return *is
	}
	return caller{}
}

// agent is whose session it is: coder-17 is coder's.
func (c caller) agent() string {
	return c.session[:max(0, strings.LastIndexByte(c.session, '-'))]
}

// mayOrder refuses what nobody may do for himself (X10). about is the agent that an order is
// for; empty: the whole team.
func mayOrder(ctx context.Context, event, about string) error {
	is := callerIn(ctx)
	subject := about
	if subject == "" {
		subject = "the team"
	}
	switch {
	case is.unseen:
		return &machine.Refusal{
			Subject: subject, Event: event, State: "the caller is gone", Row: "X10",
			Reason: "the process that connected ended before it was seen, so nobody knows whether an agent asks; ask again and stay until the answer",
		}
	case is.session == "" || about != "" && about != is.agent():
		return nil
	}
	return &machine.Refusal{
		Subject: subject, Event: event, State: "asked from within " + is.session, Row: "X10",
		Reason: "nobody releases himself: an agent lifts no hold, stops no daemon and gives itself no orders; ask the person whose team this is",
	}
}
