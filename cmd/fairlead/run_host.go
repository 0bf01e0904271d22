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

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/engine"
)

// helm is where runs are steered from: the daemon of the repository, or, where there is none,
// one that lives in this process for as long as the verb does. Both are spoken to over the
// socket, so that there is one way to do a thing, and so that `fairlead approve` in another
// terminal finds a run that has no daemon.
type helm struct {
	*api.Client
	own     *daemon   // nil: somebody else's
	since   time.Time // when it was taken
	signals chan os.Signal
}

// takeHelm finds the daemon of the repository, or becomes it.
func (a *app) takeHelm(ctx context.Context) (*helm, error) {
	h := &helm{since: time.Now(), signals: make(chan os.Signal, 4)}
	signal.Notify(h.signals, os.Interrupt, syscall.SIGTERM)
	client, err := a.dial()
	var none *api.NoDaemon
	switch {
	case err == nil:
		h.Client = client
		return h, nil
	case !errors.As(err, &none):
		signal.Stop(h.signals)
		return nil, err
	}
	if h.own, err = a.host(ctx); err != nil {
		signal.Stop(h.signals)
		return nil, err
	}
	if h.Client, err = a.dial(); err != nil {
		signal.Stop(h.signals)
		return nil, errors.Join(err, h.own.close())
	}
	return h, nil
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
	if err := h.own.engine.Stop(ctx, engine.Actor{Kind: "human", ID: "fairlead run"}, false); err != nil {
		return errors.Join(err, h.own.close())
	}
	for {
		select {
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
