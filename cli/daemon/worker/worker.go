package worker

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/server"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

// Options are what the daemon of a host needs.
type Options struct {
	Dir      string               // the repository
	Space    *workspace.Workspace // of Dir, locked; nil: Run locks it
	Identity *ca.Identity
	Config   Config
	Log      *slog.Logger
	Version  string // of Fairlead
	Ready    func() // called when programs on this host are answered; nil: not needed
	Down     func() // called when a program asks the daemon to end; nil: not needed

	AsOf    func() time.Time        // up to when the host's copy of the journal is complete; nil: it has no copy
	Other   func() *api.OtherConfig // why this host cannot lead; nil: not needed
	NoStore func() string           // why its server has no store; nil: not needed
	Setup   func() string           // the identity of the configuration here; nil: this host never leads
	Learned func(wire.RenewOut)     // called with each answer to a renewal; nil: not needed. It returns at once
}

const (
	stepEvery   = time.Second // how often it is checked what is due
	headersWait = 30 * time.Second
	idleWait    = 2 * time.Minute
	headerBytes = 64 << 10
	connectWait = 3 * time.Second // for the first connection to the leader, before the host says that it is ready
	goodbyeWait = 5 * time.Second // for answers in progress when the daemon stops

	forgetEvery = time.Hour
	forgetAfter = 7 * 24 * time.Hour // since a session ended; a person may look at its folder until then
)

// daemon is what Run assembles.
type daemon struct {
	Options
	dir     string // Dir without links
	known   *addresses
	keeper  *leaseKeeper
	line    *line
	sockets *caller.SessionSockets                               // of sessions in views
	dial    func(ctx context.Context, up func(connection)) error // until ctx ends, or the team refuses the host
	stop    context.CancelFunc
	forget  func(ctx context.Context, before time.Time, keeps func(session string) bool) error // sessions that are over; nil: none
}

// run works until ctx ends, a program on the host asks the daemon to end, or the host does not belong to its team.
func (d *daemon) run(ctx context.Context) error {
	ctx, d.stop = context.WithCancel(ctx)
	defer d.stop()
	socket, err := server.KeepSocket(d.Dir, d.Log, d.announce)
	if err != nil {
		return err
	}
	srv := d.server()
	var running sync.WaitGroup
	running.Go(func() { _ = srv.Serve(server.Bounded(socket, d.Log)) })
	running.Go(func() { _ = srv.Serve(d.sockets) })
	defer func() {
		d.stop() // the connection to the leader ends, and with it what is passed on
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeWait)
		defer cancel()
		if srv.Shutdown(wait) != nil {
			_ = srv.Close()
		}
		running.Wait()
	}()
	if err := d.announce(socket.Addr().String()); err != nil {
		return err
	}
	refused := make(chan error, 1)
	running.Go(func() { refused <- d.dial(ctx, d.line.up) })
	if d.forget != nil {
		running.Go(func() { d.forgetSessions(ctx) })
	}
	select { // a command that follows the start is answered
	case <-d.line.came:
		d.line.signal() // for work
	case err := <-refused:
		refused <- err
	case <-time.After(connectWait): // the host tries again
	case <-ctx.Done():
	}
	if d.Ready != nil && len(refused) == 0 && ctx.Err() == nil {
		d.Ready()
	}
	return d.work(ctx, refused)
}

// forgetSessions removes the folders of sessions that ended long ago, until ctx ends.
func (d *daemon) forgetSessions(ctx context.Context) {
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := d.forget(ctx, time.Now().Add(-forgetAfter), d.keeper.needs); err != nil && ctx.Err() == nil {
			d.Log.Warn("folders of sessions that are over could not be removed; it is tried again in an hour", "error", err)
		}
	}
}

func (d *daemon) announce(socket string) error {
	return d.Space.Announce(workspace.Daemon{PID: os.Getpid(), Socket: socket, Version: d.Version})
}

// server answers programs on this host.
func (d *daemon) server() *http.Server {
	began := time.Now()
	return &http.Server{
		Handler: &forward{
			line: d.line, away: func() string { return d.keeper.away(d.known.now()) }, down: d.down,
			none: func() api.Leader { return d.keeper.none(began, d.AsOf) }, other: d.Other, noStore: d.NoStore,
		},
		ReadHeaderTimeout: headersWait, IdleTimeout: idleWait, MaxHeaderBytes: headerBytes, DisableGeneralOptionsHandler: true,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return caller.WithConn(ctx, c, d.dir) },
		ErrorLog:    slog.NewLogLogger(d.Log.Handler(), slog.LevelDebug), // faults of unknown clients are not faults of the server
	}
}

// down ends the daemon. Its sessions end at their deadline, unless a daemon of this host begins before that.
func (d *daemon) down(ctx context.Context, now bool) {
	if d.Down != nil {
		d.Down()
	}
	if now {
		for _, is := range d.keeper.shims.Known() {
			if err := d.keeper.shims.End(ctx, is.Token.Session); err != nil {
				d.Log.Warn("a session could not be ended; it ends at its deadline", "session", is.Token.Session, "error", err)
			}
		}
	}
	d.stop()
}

// work does what is due every second, and whenever there is a new connection.
func (d *daemon) work(ctx context.Context, refused <-chan error) error {
	tick := time.NewTicker(stepEvery)
	defer tick.Stop()
	said, heard := "", time.Time{}
	for {
		renewed := d.keeper.step(ctx)
		err := errors.Join(renewed, d.line.certificate(ctx, d.Identity))
		if at := d.keeper.lastHeard(); !at.Equal(heard) {
			said, heard = "", at
		}
		d.line.drop(heard, renewed)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was asked to end
		}
		if gone, is := errors.AsType[*Gone](err); is {
			return gone
		}
		if err != nil && err.Error() != said { // the same one is logged once, until the leader answers
			said = err.Error()
			d.Log.Warn("the lease of this host was not renewed, or a session did not get its new deadline", "error", err)
		}
		if err := d.Space.Lost(); err != nil {
			return err
		}
		d.Space.Keep(d.Log)
		select {
		case <-tick.C:
		case <-d.line.came:
		case err := <-refused:
			if ctx.Err() != nil {
				return nil //nolint:nilerr // it was asked to end
			}
			return err
		case <-ctx.Done():
			return nil
		}
	}
}
