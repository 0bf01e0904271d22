package daemon

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/hosts"
	"github.com/fairlead-dev/fairlead/cluster"
	"github.com/fairlead-dev/fairlead/cluster/engine"
	"github.com/fairlead-dev/fairlead/cluster/worker"
	"github.com/fairlead-dev/fairlead/internal/version"
)

// errOfHost refuses what needs a journal of its own.
var errOfHost = &cli.Coded{Code: cli.ExitRefused, Err: errors.New("this machine is a host of a team that another machine leads, and has no journal; `fairlead up` connects it, and then commands ask the leader")}

// isHost reports whether this machine runs sessions for a leader elsewhere.
func isHost(a *cli.App) (bool, error) {
	if err := a.Place(nil); err != nil {
		return false, err
	}
	is, err := hosts.Load(a.Dir)
	return worker.Joined(a.Dir) || is != nil && is.Joined(), err
}

// upHost runs a host until it is stopped, or the team refuses it.
func upHost(ctx context.Context, a *cli.App, opts UpOptions) (err error) {
	if opts.Listen != "" {
		return &cli.Coded{Code: cli.ExitUsage, Err: errors.New("this machine is a host and serves no page: leave out --listen; Mission Control is on the leader's machine")}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	conf, beside, err := besideHost(ctx, a, opts)
	if err != nil {
		return err
	}
	if beside != nil {
		var mirrors sync.WaitGroup
		mirroring, end := context.WithCancel(ctx)
		mirrors.Go(func() { beside.mirror(mirroring, filepath.Join(a.Dir, ".fairlead", "journal.db")) })
		defer func() {
			end()
			mirrors.Wait()
			err = errors.Join(err, beside.Close())
		}()
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE) // closing a terminal must not end it
	var said error
	err = worker.Run(ctx, worker.Options{
		Learned: beside.learned(),
		Dir:     a.Dir, Config: conf, Log: a.Logger(opts.Verbose), Version: version.String(),
		Ready: func() {
			said = a.Say(map[string]any{"ready": true, "host": conf.Name, "team": conf.Team, "pid": os.Getpid()}, "ready host %s of team %s", conf.Name, conf.Team)
		},
	})
	var gone *worker.Gone
	if errors.As(err, &gone) {
		return &cli.Coded{Code: cli.ExitRefused, Err: err}
	}
	return errors.Join(err, said)
}

// besideHost is how a host runs, and what an engine host keeps beside that; nil: it is none.
func besideHost(ctx context.Context, a *cli.App, opts UpOptions) (worker.Config, *engines, error) {
	is, err := hosts.Load(a.Dir)
	if err != nil || is == nil {
		conf, failed := worker.LoadConfig(a.Dir)
		return conf, nil, cmp.Or(err, failed)
	}
	id, err := is.Identify(a.Dir, nil)
	if err != nil {
		return worker.Config{}, nil, err
	}
	beside := &engines{}
	if err := beside.begin(ctx, a.Dir, *is, id, a.Logger(opts.Verbose)); err != nil {
		return worker.Config{}, nil, errors.Join(err, beside.Close())
	}
	return is.Worker(beside.known()), beside, nil
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
