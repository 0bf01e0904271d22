package membership

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// Router is the host of all sessions of a team: each call goes to the machine on which its session runs. What
// starts on another machine is started by Controller.StartOn, because that needs more.
type Router struct {
	sessionhost.Host // this machine
	c                *Controller
}

// Router returns it. Without a cluster it is the host of this machine itself.
func (c *Controller) Router() sessionhost.Host {
	if c.is == nil {
		return c.local
	}
	return &Router{Host: c.local, c: c}
}

// Start implements sessionhost.Host for sessions of this machine.
func (r *Router) Start(ctx context.Context, session string, epoch uint64, launch spawn.Launch, grace time.Duration,
) (sessionhost.Process, error) {
	if name := r.c.HostOf(session); name != "" {
		return nil, &spawn.CannotStart{Why: "it is placed on host " + name}
	}
	if !r.c.is.Stream {
		return r.Host.Start(ctx, session, epoch, launch, grace)
	}
	r.c.mu.Lock()
	lease, placed := r.c.leases[session]
	r.c.mu.Unlock()
	if !placed {
		return nil, &spawn.CannotStart{Why: "it has no lease on this machine"}
	}
	if err := r.c.is.NoteLease(lease); err != nil { // first: a slow disk may outlast the leader's lease
		return nil, &spawn.CannotStart{Why: err.Error()}
	}
	for !r.c.is.Confirmed() { // another host may lead
		if !retry.Rest(ctx, loop.RetryFirst) {
			return nil, context.Cause(ctx)
		}
	}
	man := &host.DeadMan{StartBy: r.c.Clock() + host.GrantFor, EndAt: r.c.is.Deadline(), Waits: lease.OnLost == host.Wait}
	return r.c.is.StartLeased(ctx, session, epoch, launch, grace, man)
}

// adoptWithin is how long a connected host may take to answer. Then the question is repeated.
const adoptWithin = 10 * time.Second

// Adopt implements sessionhost.Host. While the host of a session has no connection, its outcome is not known.
func (r *Router) Adopt(ctx context.Context, session string, epoch uint64) (sessionhost.Process, sessionhost.Found, error) {
	lease, away := r.c.LeaseOf(session)
	if !away {
		return r.Host.Adopt(ctx, session, epoch)
	}
	select {
	case <-r.c.Lost(session):
		return nil, sessionhost.Lost, nil
	default:
	}
	if r.c.is.Connected(lease.Host) == "" {
		return nil, "", &NotConnected{Host: lease.Host}
	}
	asking, cancel := context.WithTimeout(ctx, adoptWithin)
	defer cancel()
	proc, found, err := r.c.remote(lease.Host).Adopt(asking, session, epoch)
	if err == nil && proc != nil && found != sessionhost.NeverStarted {
		r.c.follow(session, proc)
	}
	return proc, found, err
}

// NotConnected says that a host has no connection to its leader now.
type NotConnected struct{ Host string }

func (n *NotConnected) Error() string {
	return "host " + n.Host + " has no connection to this machine; `fairlead hosts` says since when"
}

// Output implements sessionhost.Host.
func (r *Router) Output(ctx context.Context, session string, offset int64) (io.ReadCloser, error) {
	lease, away := r.c.LeaseOf(session)
	switch {
	case away && r.c.is.Connected(lease.Host) != "":
		return r.c.remote(lease.Host).Output(ctx, session, offset)
	case away:
		return r.c.outputs.open(session, offset)
	}
	out, err := r.Host.Output(ctx, session, offset)
	if errors.Is(err, fs.ErrNotExist) {
		if kept, fault := r.c.outputs.open(session, offset); fault == nil {
			return kept, nil
		}
	}
	return out, err
}
