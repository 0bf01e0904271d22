package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/link"
	"github.com/fairlead-dev/fairlead/hosts/local"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/process/boottime"
	"github.com/fairlead-dev/fairlead/work/logins"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// Run is the daemon of a host. It works until ctx ends or a program on the host asks it to end, and leaves its sessions
// to the next daemon. The error is a *Gone if the host does not belong to its team.
func Run(ctx context.Context, o Options) (err error) {
	if o.Identity == nil {
		if o.Identity, err = ca.LoadIdentity(Folder(o.Dir), time.Now); err != nil {
			return err
		}
	}
	if o.Identity.Name != o.Config.Name {
		return fmt.Errorf("%s is of host %s, and the keys beside it are of host %s; %s", configFile, o.Config.Name, o.Identity.Name,
			restoreOrJoin)
	}
	if o.Space == nil {
		if o.Space, err = workspace.OpenWorkspace(o.Dir); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.Space.Close()) }()
	}
	boot := workspace.BootID()
	if boot == "" {
		return errors.New("this system has no boot id, so the leader could not know that its sessions have ended; a host needs Linux")
	}
	at, err := wire.PlacesOf(o.Dir)
	if err != nil {
		return err
	}
	known := &addresses{log: o.Log, conf: o.Config}
	if o.Learned == nil { // an engine host keeps them itself
		known.dir = o.Dir
	}
	l := &line{came: make(chan struct{}, 1)}
	k := &leaseKeeper{
		facts: wire.RenewIn{
			Boot: boot, Labels: o.Config.Labels, Capacity: o.Config.Capacity, Version: o.Version, Places: at,
			Daemon: rand.Text(), Engine: o.Config.Engine,
		},
		name: o.Config.Name, team: o.Config.Team, folder: Folder(o.Dir), now: boottime.Now, leader: l, log: o.Log,
		find:  func(uses, was []host.Lack) []host.Lack { return wire.Lacking(uses, was, os.Environ(), at.Root) },
		setup: o.Setup,
		learned: func(out wire.RenewOut) {
			known.learn(out.Engines)
			if o.Learned != nil {
				o.Learned(out)
			}
		},
	}
	if err := k.begin(); err != nil {
		return err
	}
	sockets := caller.NewSessionSockets()
	defer sockets.Close()
	here := ours{&sessions.Shims{Folder: o.Space.Path("sessions"), Workspace: at.Root}, nil}
	here.Sessions = &local.Sessions{Shims: here.shims, Guard: k, Sockets: sockets, Root: at.Root, Exe: at.Exe, Log: o.Log}
	k.shims = here
	defer here.Close()
	if err := here.resume(ctx, k); err != nil {
		return err
	}
	routes := http.NewServeMux()
	here.Routes(routes)
	(&local.Trees{Root: at.Root, Log: o.Log}).Routes(routes)
	d := &daemon{Options: o, dir: at.Root, known: known, keeper: k, line: l, sockets: sockets, forget: here.Forget}
	d.dial = func(ctx context.Context, up func(connection)) error {
		err := link.Keep(ctx,
			link.DialOptions{Identity: o.Identity, Addresses: known.next, Handler: routes, Failed: k.unreached, Log: o.Log},
			func(c *link.Conn) { up(c) })
		if refused, is := errors.AsType[*link.Refused](err); is {
			return &Gone{Host: k.name, Team: k.team, Why: refused.Error()}
		}
		return err
	}
	watch, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() { defer close(watched); logins.Watch(watch, o.Space.Path(), o.Log) }()
	defer func() { stop(); <-watched }()
	return d.run(ctx)
}

// ours are the sessions of this host.
type ours struct {
	shims *sessions.Shims
	*local.Sessions
}

// Extend moves the deadline of all leased sessions.
func (o ours) Extend(ctx context.Context, to host.BootTime) error { return o.shims.Extend(ctx, to) }

// resume ends the processes of sessions whose shim is gone, and adopts those that run.
func (o ours) resume(ctx context.Context, k *leaseKeeper) error {
	swept, err := o.shims.Sweep(ctx)
	if err != nil {
		return fmt.Errorf("end the processes of sessions that have no shim: %w", err)
	}
	for _, what := range swept {
		k.log.Warn("a process of a session without a shim was ended", "process", what)
	}
	if err := o.Resume(ctx, k.guard.Epoch); err != nil {
		return fmt.Errorf("adopt the sessions on this host: %w", err)
	}
	return nil
}
