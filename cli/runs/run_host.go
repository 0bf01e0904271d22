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

// Helm is where runs are steered from: the daemon of the repository, or, where there is none,
// one that lives in this process for as long as the verb does. Both are spoken to over the
// socket, so that there is one way to do a thing, and so that `fairlead approve` in another
// terminal finds a run that has no daemon.
type Helm struct {
	*apiclient.Client
	own     *daemon.Daemon // nil: somebody else's
	since   time.Time      // when it was taken
	signals chan os.Signal
}

// helmWait is how long somebody who has the workspace, and does not answer yet, is waited for:
// two runs that are begun at the same moment are both begun, one as the other's daemon.
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

// tryHelm is takeHelm, once. The error is a *workspace.Busy where somebody has the workspace.
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

// host is a daemon in this process. A repository without a fairlead.yaml has no agents, and
// workflows whose steps are commands need none.
func host(ctx context.Context, a *cli.App) (*daemon.Daemon, error) {
	conf, err := a.LoadOrNone()
	if err != nil {
		return nil, err
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE) // as in up: a terminal that goes away takes nobody with it
	return daemon.OpenDaemon(ctx, conf, "127.0.0.1:0", a.Logger(false))
}

// runActor is who stops a daemon that was one for as long as a verb lasted. Whoever follows a
// run in it reads by that name that nobody wished his run to stop, and takes the helm.
const runActor = "fairlead run"

// leaveQuiet is how long other work is waited for without a word.
const leaveQuiet = 500 * time.Millisecond

// leave lets go of the helm. A daemon of our own stops first, as `fairlead down` lets it:
// sessions under way finish, unless another signal comes; those go on then, and are found by
// whoever comes next.
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
			fmt.Fprintln(a.Err, "fairlead: other work of this repository is still at it; waiting for that to finish, Ctrl-C leaves it")
		case <-h.own.Engine.Stopped():
			return h.own.Close()
		case err := <-h.own.Ran:
			h.own.Ran <- nil
			return errors.Join(err, h.own.Close())
		case <-h.signals:
			fmt.Fprintln(a.Err, "fairlead: going now; what still runs goes on, and the next `fairlead up` finds it")
			return h.own.Close()
		}
	}
}
