package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// errUnwritten ends the daemon of a leader that was asked to end without most of the engine hosts.
var errUnwritten = errors.New("fairlead has stopped; " + unwritten)

const unwritten = "most of the engine hosts do not answer, so the order to stop is not in the journal, nor what its sessions did since they last answered. " +
	"Sessions that run here continue until their deadline; if `fairlead up` runs before that, it adopts them"

// confirmEvery is how often a leader that stores the order to stop looks whether it can still store anything.
const confirmEvery = 250 * time.Millisecond

// stop stops the daemon as Engine.Stop does. A leader that cannot act on its lease cannot store that: then it ends
// without, and what is returned says so.
func (d *Daemon) stop(ctx context.Context, by change.Actor, now bool) (string, error) {
	leads := d.beside.leading()
	if leads == nil {
		return "", d.Engine.Agents.Stop(ctx, by, now)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stored := make(chan error, 1)
	go func() { stored <- d.Engine.Agents.Stop(ctx, by, now) }()
	tick := time.NewTicker(confirmEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-stored:
			if err == nil {
				d.beside.stopping.Store(true)
			}
			return "", err
		case <-tick.C:
		}
		if !leads.Confirmed() {
			d.beside.stopping.Store(true)
			ring(d.beside.cut)
			return unwritten, nil
		}
	}
}

// errAsked ends a leader that was asked to end while it waited for other engine hosts to open the journal.
var errAsked = errors.New("asked to end while most of the engine hosts did not answer")

// untilAsked is a context that also ends, with errAsked, when the process is asked to end. The signal stays for what comes then. Call done.
func (e *engines) untilAsked(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case sig := <-e.signals:
			select {
			case e.signals <- sig:
			default: // there are others
			}
			cancel(errAsked)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-ended }
}

// untilDeposed is a context that also ends, with errDeposed, when another host has claimed the lead.
func (e *engines) untilDeposed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	lost := e.deposed()
	go func() {
		select {
		case <-lost:
			cancel(errDeposed)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
