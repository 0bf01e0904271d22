package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/hosts"
	"github.com/fairlead-dev/fairlead/cluster"
	"github.com/fairlead-dev/fairlead/cluster/ca"
	"github.com/fairlead-dev/fairlead/cluster/engine"
	"github.com/fairlead-dev/fairlead/cluster/worker"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/internal/version"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/jetstream"
	"github.com/fairlead-dev/fairlead/workspace"
)

// errOfHost refuses what needs a journal of its own.
var errOfHost = &cli.Coded{Code: cli.ExitRefused, Err: errors.New("this machine is a host of a team that another machine leads, and has no journal; `fairlead up` connects it, and then commands ask the leader")}

// isHost reports whether this machine runs sessions for a leader elsewhere. An engine host may lead now, or not.
func isHost(a *cli.App) (bool, error) {
	if err := a.Place(nil); err != nil {
		return false, err
	}
	is, err := hosts.Load(a.Dir)
	if err != nil || is == nil {
		return worker.Joined(a.Dir), err
	}
	d, err := workspace.FindDaemon(a.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return is.Joined(), nil
	}
	return err == nil && d.Address == "", err // only a leader serves the page
}

// leadAgain is how long a host that could not lead leaves that to others.
const leadAgain = 30 * time.Second

// upHost runs a host until it is stopped, or the team refuses it.
func upHost(ctx context.Context, a *cli.App, opts UpOptions) error {
	if opts.Listen != "" {
		return &cli.Coded{Code: cli.ExitUsage, Err: errors.New("this machine is a host and serves no page: leave out --listen; Mission Control is on the leader's machine")}
	}
	conf, err := worker.LoadConfig(a.Dir)
	if err != nil {
		return err
	}
	return runHost(ctx, a, opts, conf, nil)
}

// runHost runs sessions for the leader until ctx ends. beside is of an engine host. It says that it is ready, unless the process has said so.
func runHost(ctx context.Context, a *cli.App, opts UpOptions, conf worker.Config, beside *engines) error {
	var said error
	err := worker.Run(ctx, worker.Options{
		Dir: a.Dir, Space: beside.locked(), Config: conf, Log: a.Logger(opts.Verbose), Version: version.String(), Learned: beside.learned(),
		Ready: func() {
			if beside == nil || !beside.said {
				said = a.Say(map[string]any{"ready": true, "host": conf.Name, "team": conf.Team, "pid": os.Getpid()}, "ready host %s of team %s", conf.Name, conf.Team)
				if beside != nil {
					beside.said = true
				}
			}
		},
	})
	var gone *worker.Gone
	if errors.As(err, &gone) {
		return &cli.Coded{Code: cli.ExitRefused, Err: err}
	}
	return errors.Join(err, said)
}

// locked is the folder, if it is locked for more than one daemon; else nil.
func (e *engines) locked() *workspace.Workspace {
	if e == nil {
		return nil
	}
	return e.space
}

// learned is how a host that does not lead learns of engine hosts; nil: it does not need them.
func (e *engines) learned() func([]cluster.EngineHost, bool) {
	if e == nil {
		return nil
	}
	return func(all []cluster.EngineHost, stream bool) {
		e.learn(func() engine.Facts { return engine.Facts{Engines: all, Stream: stream} })
	}
}

// mayLead begins what an engine host runs beside its daemon, and reports whether it leads now. One whose journal is replicated
// leads when it has claimed that.
func (e *engines) mayLead(ctx context.Context, a *cli.App, opts UpOptions, first bool) (bool, error) {
	is, err := hosts.Load(a.Dir)
	if err != nil || is == nil {
		return true, err
	}
	if e.space == nil { // before anything listens, and for as long as this process works here, as a leader or a host
		if e.space, err = workspace.OpenWorkspace(a.Dir); err != nil {
			e.space = nil
			return false, err
		}
	}
	var authority *ca.Authority
	if !is.Joined() {
		if authority, err = ca.Load(worker.Folder(a.Dir)); err != nil {
			return false, err
		}
	}
	id, err := is.Identify(a.Dir, authority)
	if err == nil {
		err = e.begin(ctx, a.Dir, *is, id, a.Logger(opts.Verbose))
	}
	if err != nil {
		return false, err
	}
	if !e.known().Stream {
		return !is.Joined(), nil
	}
	if first {
		e.again(ctx)
	}
	return e.leading() != nil, nil
}

// againWithin is how long a host waits for the servers when it starts, to see whether it was the last to lead.
const againWithin = 5 * time.Second

// again claims the lead at once if this host was the last to lead, since no other daemon of it runs.
func (e *engines) again(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, againWithin)
	defer cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.server != nil {
		name, revision, err := e.server.Leader(ctx)
		if err == nil && name == e.is.Name {
			err = e.claimOn(ctx, revision)
		}
		if err == nil || !rest(ctx, mirrorAgain/4) {
			return
		}
	}
}

// follow runs an engine host that does not lead, until it is asked to end or has claimed the lead. It does not claim that
// before some time.
func (e *engines) follow(ctx context.Context, a *cli.App, opts UpOptions, signals <-chan os.Signal, after time.Duration) (claimed bool, err error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	var work sync.WaitGroup
	work.Go(func() {
		if e.await(running, after) == nil {
			stop()
		}
	})
	asked := false
	work.Go(func() {
		select {
		case <-signals:
			asked = true
			stop()
		case <-running.Done():
		}
	})
	work.Go(func() { e.mirror(running, filepath.Join(a.Dir, ".fairlead", "journal.db")) })
	err = runHost(running, a, opts, e.is.Worker(e.known()), e)
	stop()
	work.Wait()
	return e.leading() != nil && !asked, err
}

// deposedBy reports whether a daemon ended because it does not lead any longer, as far as it knows.
func (e *engines) deposedBy(err error) bool {
	return e.known().Stream && (errors.Is(err, errDeposed) || errors.As(err, new(*journal.Conflict)) || errors.As(err, new(*jetstream.Unproven)) || errors.As(err, new(*jetstream.Damage)) || errors.As(err, new(*seam.Fenced)))
}

// errDeposed ends a daemon whose host does not lead any longer.
var errDeposed = errors.New("another engine host leads the team now")
