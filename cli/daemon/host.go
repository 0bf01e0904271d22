package daemon

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/fairlead-dev/fairlead/cli"
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
	return worker.Joined(a.Dir), nil
}

// upHost runs a host until it is stopped, or the team refuses it.
func upHost(ctx context.Context, a *cli.App, opts UpOptions) error {
	if opts.Listen != "" {
		return &cli.Coded{Code: cli.ExitUsage, Err: errors.New("this machine is a host and serves no page: leave out --listen; Mission Control is on the leader's machine")}
	}
	conf, err := worker.LoadConfig(a.Dir)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE) // closing a terminal must not end it
	var said error
	err = worker.Run(ctx, worker.Options{
		Dir: a.Dir, Config: conf, Log: a.Logger(opts.Verbose), Version: version.String(),
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
