package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/workspace"
)

// helm is where runs are steered from: the daemon of the repository, or, where there is none,
// one that lives in this process for as long as the verb does. Both are spoken to over the
// socket, so that there is one way to do a thing, and so that `fairlead approve` in another
// terminal finds a run that has no daemon.
type helm struct {
	*apiclient.Client
	own     *daemon   // nil: somebody else's
	since   time.Time // when it was taken
	signals chan os.Signal
}

// helmWait is how long somebody who has the workspace, and does not answer yet, is waited for:
// two runs that are begun at the same moment are both begun, one as the other's daemon.
const helmWait = 10 * time.Second

// takeHelm finds the daemon of the repository, or becomes it.
func (a *app) takeHelm(ctx context.Context) (*helm, error) {
	h := &helm{since: time.Now(), signals: make(chan os.Signal, 4)}
	signal.Notify(h.signals, os.Interrupt, syscall.SIGTERM)
	for {
		err := a.tryHelm(ctx, h)
		var busy *workspace.Busy
		if err == nil {
			return h, nil
		}
		if !errors.As(err, &busy) || time.Since(h.since) > helmWait || pause(ctx, downPoll) != nil {
			signal.Stop(h.signals)
			return nil, err
		}
	}
}

// tryHelm is takeHelm, once. The error is a *workspace.Busy where somebody has the workspace.
func (a *app) tryHelm(ctx context.Context, h *helm) error {
	var err error
	h.Client, err = a.dial()
	var none *apiclient.NoDaemon
	if !errors.As(err, &none) {
		return err
	}
	if h.own, err = a.host(ctx); err != nil {
		return err
	}
	if h.Client, err = a.dial(); err != nil {
		return errors.Join(err, h.own.close())
	}
	return nil
}

// host is a daemon in this process. A repository without a fairlead.yaml has no agents, and
// workflows whose steps are commands need none.
func (a *app) host(ctx context.Context) (*daemon, error) {
	conf, err := a.loadOrNone()
	if err != nil {
		return nil, err
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE) // as in up: a terminal that goes away takes nobody with it
	return openDaemon(ctx, conf, "127.0.0.1:0", a.logger(false))
}

// loadOrNone reads the configuration; where there is none, it is a team without agents.
func (a *app) loadOrNone() (*config.Config, error) {
	if exists(filepath.Join(a.dir, config.FileName)) {
		return a.load()
	}
	return config.Parse(config.FileName, a.dir, []byte("version: 1\nagents: {}\n"), os.LookupEnv)
}

// runActor is who stops a daemon that was one for as long as a verb lasted. Whoever follows a
// run in it reads by that name that nobody wished his run to stop, and takes the helm.
const runActor = "fairlead run"

// leaveQuiet is how long other work is waited for without a word.
const leaveQuiet = 500 * time.Millisecond

// leave lets go of the helm. A daemon of our own stops first, as `fairlead down` lets it:
// sessions under way finish, unless another signal comes; those go on then, and are found by
// whoever comes next.
func (h *helm) leave(ctx context.Context, a *app, wait bool) error {
	defer signal.Stop(h.signals)
	defer h.Client.Close()
	if h.own == nil {
		return nil
	}
	if !wait {
		return h.own.close()
	}
	if err := h.own.engine.Stop(ctx, seam.Actor{Kind: "human", ID: runActor}, false); err != nil {
		return errors.Join(err, h.own.close())
	}
	patience := time.NewTimer(leaveQuiet)
	defer patience.Stop()
	for {
		select {
		case <-patience.C:
			fmt.Fprintln(a.err, "fairlead: other work of this repository is still at it; waiting for that to finish, Ctrl-C leaves it")
		case <-h.own.engine.Stopped():
			return h.own.close()
		case err := <-h.own.ran:
			h.own.ran <- nil
			return errors.Join(err, h.own.close())
		case <-h.signals:
			fmt.Fprintln(a.err, "fairlead: going now; what still runs goes on, and the next `fairlead up` finds it")
			return h.own.close()
		}
	}
}
