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

// walksMax bounds the repeated walks up a process tree that changes during the walk. A process that
// forks and exits endlessly is refused, not waited for.
const walksMax = 8

// life is one process: its PID and its start time in ticks since boot. PIDs are reused.
type life struct {
	pid   int
	began uint64
}

// caller is the peer of a connection: the process, and the Fairlead session that it runs in.
type caller struct {
	net.Conn
	session string // empty: in none
	who     life   // the process that connected; zero if its PID is not known
	unseen  bool   // it could not be inspected: it is gone, or its ancestors changed during each attempt

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
	is.session, is.who, is.unseen = look(pid, func() (string, bool) { return shim.SessionOf(dir, pid) }, ancestry)
	return is
}

// look finds the session that a process runs in. The answer "no session" counts only if the
// ancestors are the same before and after the question: if an ancestor exits meanwhile, the walk
// ends below the shim, and the orphaned process becomes the shim's child a moment later.
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

// gone reports whether the process that connected has ended. It may have passed the connection to
// another process, so the caller is unknown then.
func (c caller) gone() bool {
	if c.who.pid == 0 {
		return false
	}
	now, is := living(c.who.pid)
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

// agent returns the agent whose session it is: coder-17 belongs to coder.
func (c caller) agent() string {
	return c.session[:max(0, strings.LastIndexByte(c.session, '-'))]
}

// inStep reports whether it is a step's session, STEP@RUN-NUMBER. The name of such a session does
// not contain the agent.
func (c caller) inStep() bool { return strings.Contains(c.session, "@") }

// mayOrder refuses orders that an agent may not give (X10). about is the agent that the order is
// for; empty means the whole team. Holding the team is allowed for every caller: it stops work and
// releases nothing, and a person can lift it.
func mayOrder(ctx context.Context, event, about string) error {
	subject := about
	if subject == "" {
		subject = "the team"
	}
	return callerIn(ctx).mayOrder(event, subject, about)
}

// mayOrderRun refuses orders about runs to every agent (X10): an agent may work in a step of the run
// and would approve its own work. run is empty if a run is to be started.
func mayOrderRun(ctx context.Context, event, run string) error {
	subject := "the team"
	if run != "" {
		subject = "run " + run
	}
	return callerIn(ctx).mayOrder(event, subject, "")
}

// mayOrderChannel refuses people's orders about channels to every agent (X10): the agent would speak
// as a person, or give itself the turn. Agents have routes of their own.
func mayOrderChannel(ctx context.Context, event, subject string) error {
	c := callerIn(ctx)
	return c.because("this route is for people; an agent speaks under its own name, and only while it has the turn", c.mayOrder(event, subject, ""))
}

// mayActAs refuses to let an agent act in the name of another (X10). A caller that is in no Fairlead
// session and has the token may be a foreign agent.
func mayActAs(ctx context.Context, event, agent string) error {
	c := callerIn(ctx)
	if c.session != "" && !c.inStep() && c.agent() == agent {
		return nil
	}
	return c.because("an agent may act only in its own name, and not at all from a step of a run", c.mayOrder(event, agent, ""))
}

// because sets the reason of a refusal if the caller is an agent.
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
			Reason: "the process that connected ended before it could be identified, so it may have been an agent; repeat the request and keep the process alive until the answer",
		}
	case c.session == "" || about != "" && about != c.agent() && !c.inStep():
		return nil
	}
	return &machine.Refusal{
		Subject: subject, Event: event, State: "asked from within " + c.session, Row: "X10",
		Reason: "an agent may not lift a hold, stop the daemon or give itself orders; ask the person who runs this team",
	}
}
