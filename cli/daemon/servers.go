package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/engine"
	"github.com/fairlead-dev/fairlead/internal/retry"
)

// serve starts the server, if it does not run and there are enough engine hosts. mu is held.
func (e *engines) serve(ctx context.Context) (err error) {
	if e.server != nil || !e.facts.Many() {
		return nil
	}
	e.server, err = engine.Start(ctx, engine.Options{Identity: e.id, Folder: e.folder, Listen: e.is.Listen, Log: e.log}, e.facts.Engines)
	if err != nil {
		e.gap.set(cluster.Unreplicated{Code: cluster.ServerFailed, Fault: err.Error()})
		return fmt.Errorf("start the server of this engine host: %w", err)
	}
	e.gap.set(cluster.Unreplicated{})
	serving, stop := context.WithCancel(e.ctx)
	server := e.server
	e.stop = stop
	e.work.Go(func() {
		for server.Meet(serving, e.gap.set) == nil {
			e.mu.Lock()
			runs := e.server == server // it may have ended just now
			e.met = e.met || runs
			if runs && e.gap.is().Code != cluster.CopyFailed {
				e.gap.set(cluster.Unreplicated{})
			}
			moves := runs && !e.facts.Stream && !e.is.Joined()
			e.mu.Unlock()
			if !moves {
				return
			}
			ring(e.moves)
			if !retry.Rest(serving, moveAgain) {
				return
			}
		}
	})
	return nil
}

// unserve ends the server, and removes its store: the journal is elsewhere. mu is held.
func (e *engines) unserve() error {
	if e.server == nil {
		return nil
	}
	e.stop()
	err := e.server.Close()
	e.server, e.met = nil, false
	return errors.Join(err, removeStore(e.folder))
}

// removeStore removes the store of the server from the folder of the cluster. A later server would find servers in it that the team does
// not have.
func removeStore(folder string) error {
	return os.RemoveAll(filepath.Join(folder, engine.StoreFolder))
}

// applyMembership makes the server as the facts say. What fails is tried again: no other change may come. mu is held.
func (e *engines) applyMembership() (err error) {
	if e.server != nil {
		err = e.server.Set(e.ctx, e.facts.Engines)
	} else {
		err = e.serve(e.ctx)
	}
	if err == nil || e.applying {
		return err
	}
	e.applying = true
	e.work.Go(func() {
		pauses := retry.Pauses{First: againSoon, Most: moveAgain}
		for again := true; again && pauses.Rest(e.ctx); {
			e.mu.Lock()
			again = e.applyMembership() != nil
			e.applying = again
			e.mu.Unlock()
		}
	})
	return err
}

// gap is why the journal is not replicated, as far as this host knows.
type gap struct {
	known atomic.Pointer[cluster.Unreplicated] // nil: nothing is known to be wrong
}

func (g *gap) set(is cluster.Unreplicated) { g.known.Store(&is) }

// is has no code if nothing is known to be wrong.
func (g *gap) is() cluster.Unreplicated {
	if is := g.known.Load(); is != nil {
		return *is
	}
	return cluster.Unreplicated{}
}
