package server

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/api/peer"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/shim"
)

// walksMax bounds the walks up the tree while it changes under us. A process that forks and
// exits without end is refused rather than waited for.
const walksMax = 8

// life is one process: its number, and when it began in ticks since boot. Numbers come again.
type life struct {
	pid   int
	began uint64
}

// caller is a connection over the socket, and in which session of ours its other end runs.
type caller struct {
	net.Conn
	session string // empty: in none
	who     life   // the process that connected; none where its number is not known
	unseen  bool   // it could not be looked at: gone, or its ancestors changed all the while

	port *viaTCP // it came over the port, and is looked at when it matters
}

// callerOf looks who connected, as soon as the connection is there: a number of a process
// is used again. One without a number is in none of our own namespaces, so it is no child of ours.
func callerOf(c *net.UnixConn, dir string) *caller {
	is := &caller{Conn: c}
	pid, err := peer.PID(c)
	if err != nil || pid <= 0 {
		return is
	}
	is.session, is.who, is.unseen = look(pid, func() (string, bool) { return shim.SessionOf(dir, pid) }, ancestry)
	return is
}

// look says in which session a process runs. That it is in none is believed only where the
// same ancestors stood above it before and after the question: one that exits meanwhile cuts
// the walk short of the shim, and what it leaves is the shim's child a moment later.
func look(pid int, session func() (string, bool), above func(int) ([]life, bool)) (id string, who life, unseen bool) {
	for range walksMax {
		before, whole := above(pid)
		if id, ok := session(); ok {
			return id, life{}, false
		}
		after, still := above(pid)
		if whole && still && slices.Equal(before, after) {
			return "", before[0], false
		}
	}
	return "", life{}, true
}

// gone says whether the process that connected has ended since. What is left of it may have
// handed the connection on, so nobody knows who asks.
func (c caller) gone() bool {
	if c.who.pid == 0 {
		return false
	}
	now, is := living(c.who.pid)
	return !is || now != c.who
}

// unknown says that nobody can tell whether an agent asks.
func (c caller) unknown() bool { return c.unseen || c.gone() }

// nobodySeen is who asked where he could not be looked at. No agent can have that name.
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

// repository is the folder as shims spell it.
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

// agent is whose session it is: coder-17 is coder's.
func (c caller) agent() string {
	return c.session[:max(0, strings.LastIndexByte(c.session, '-'))]
}

// inStep says whether it is a step's session, STEP@RUN-NUMBER: which agent stands in it, its
// name does not say.
func (c caller) inStep() bool { return strings.Contains(c.session, "@") }

// mayOrder refuses what nobody may do for himself (X10). about is the agent that an order is
// for; empty: the whole team. Holding the team is nobody's release and is not asked about: who
// sees something go wrong may stop it, whoever he is, and a person lifts it again.
func mayOrder(ctx context.Context, event, about string) error {
	subject := about
	if subject == "" {
		subject = "the team"
	}
	return callerIn(ctx).mayOrder(event, subject, about)
}

// mayOrderRun refuses every order about a run to every agent (X10): each may stand in a step of
// it, and would approve its own work. run is empty where one is to be started.
func mayOrderRun(ctx context.Context, event, run string) error {
	subject := "the team"
	if run != "" {
		subject = "run " + run
	}
	return callerIn(ctx).mayOrder(event, subject, "")
}

// mayOrderChannel refuses what people order about channels to every agent (X10): it would speak
// as a person, or give itself the turn. What it may do there it does in its own name.
func mayOrderChannel(ctx context.Context, event, subject string) error {
	c := callerIn(ctx)
	return c.because("people speak and order here; an agent says its own under its own name, when it has the turn", c.mayOrder(event, subject, ""))
}

// mayActAs refuses an agent what another one does for itself (X10). Whoever is in no session of
// ours and has the token may be a foreign agent.
func mayActAs(ctx context.Context, event, agent string) error {
	c := callerIn(ctx)
	if c.session != "" && !c.inStep() && c.agent() == agent {
		return nil
	}
	return c.because("an agent speaks for nobody but itself, and from a step of a run for nobody at all", c.mayOrder(event, agent, ""))
}

// because gives a refusal its own reason, where an agent asked.
func (c caller) because(reason string, err error) error {
	var no *machine.Refusal
	if errors.As(err, &no) && c.session != "" {
		no.Reason = reason
	}
	return err
}

func (c caller) mayOrder(event, subject, about string) error {
	switch {
	case c.unknown():
		return &machine.Refusal{
			Subject: subject, Event: event, State: "the caller is gone", Row: "X10",
			Reason: "the process that connected ended before it was seen, so nobody knows whether an agent asks; ask again and stay until the answer",
		}
	case c.session == "" || about != "" && about != c.agent() && !c.inStep():
		return nil
	}
	return &machine.Refusal{
		Subject: subject, Event: event, State: "asked from within " + c.session, Row: "X10",
		Reason: "nobody releases himself: an agent lifts no hold, stops no daemon and gives itself no orders; ask the person whose team this is",
	}
}
