package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/workspace"
)

// Helm is the daemon that controls runs: the daemon of the repository or, if none runs, one in this
// process that lives as long as the command. Both are reached over the socket, so that there is one
// way to do a thing, and so that `fairlead approve` in another terminal finds the run.
type Helm struct {
	*apiclient.Client
	own     *daemon.Daemon // nil: another process is the daemon
	since   time.Time      // when it was started
	signals chan os.Signal
}

// helmWait is how long to wait for a process that holds the workspace and does not answer yet: of
// two runs that start at the same moment, one becomes the other's daemon.
const helmWait = 10 * time.Second

// takeHelm finds the daemon of the repository, or becomes it.
func takeHelm(ctx context.Context, a *cli.App) (*Helm, error) {
	h := &Helm{since: time.Now(), signals: make(chan os.Signal, 4)}
	signal.Notify(h.signals, os.Interrupt, syscall.SIGTERM)
	for {
		err := tryHelm(ctx, a, h)
		var busy *workspace.Busy
		if err == nil {
			return h, nil
		}
		if !errors.As(err, &busy) || time.Since(h.since) > helmWait || cli.Pause(ctx, cli.DownPoll) != nil {
			signal.Stop(h.signals)
			return nil, err
		}
	}
}

// tryHelm is one attempt of takeHelm. The error is a *workspace.Busy if another process holds the
// workspace.
func tryHelm(ctx context.Context, a *cli.App, h *Helm) error {
	var err error
	h.Client, err = a.Dial()
	var none *apiclient.NoDaemon
	if !errors.As(err, &none) {
		return err
	}
	if h.own, err = host(ctx, a); err != nil {
		return err
	}
	if h.Client, err = a.Dial(); err != nil {
		return errors.Join(err, h.own.Close())
	}
	return nil
}

// host starts a daemon in this process. A repository without a fairlead.yaml has no agents;
// workflows whose steps are commands need none.
func host(ctx context.Context, a *cli.App) (*daemon.Daemon, error) {
	conf, err := a.LoadOrNone()
	if err != nil {
		return nil, err
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE) // as in up: closing a terminal must not end the daemon
	return daemon.OpenForRuns(ctx, conf, "127.0.0.1:0", a.Logger(false))
}

// runActor is the actor that stops a daemon which ran in a command. A command that follows a run in
// it sees by this name that no person stopped the daemon, and takes over.
const runActor = "fairlead run"

// leaveQuiet is how long the command waits for other work without a message.
const leaveQuiet = 500 * time.Millisecond

// leave releases the helm. A daemon of this process stops first, like with `fairlead down`: running
// sessions finish, unless another signal comes; then they continue, and the next daemon adopts them.
func (h *Helm) leave(ctx context.Context, a *cli.App, wait bool) error {
	defer signal.Stop(h.signals)
	defer h.Client.Close()
	if h.own == nil {
		return nil
	}
	if !wait {
		return h.own.Close()
	}
	if err := h.own.Engine.Stop(ctx, seam.Actor{Kind: "human", ID: runActor}, false); err != nil {
		return errors.Join(err, h.own.Close())
	}
	patience := time.NewTimer(leaveQuiet)
	defer patience.Stop()
	for {
		select {
		case <-patience.C:
			fmt.Fprintln(a.Err, "fairlead: waiting for other work of this repository to finish; Ctrl-C exits without waiting")
		case <-h.own.Engine.Stopped():
			return h.own.Close()
		case err := <-h.own.Ran:
			h.own.Ran <- nil
			return errors.Join(err, h.own.Close())
		case <-h.signals:
			fmt.Fprintln(a.Err, "fairlead: exiting now; running sessions continue, and the next `fairlead up` adopts them")
			return h.own.Close()
		}
	}
}
