package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/cli/hosts"
	"github.com/fairlead-dev/fairlead/cluster"
	"github.com/fairlead-dev/fairlead/cluster/ca"
	"github.com/fairlead-dev/fairlead/cluster/engine"
	"github.com/fairlead-dev/fairlead/cluster/worker"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/sqlite"
)

// mirrorAgain is how often a host that does not lead looks whether the journal is in the stream.
const mirrorAgain = time.Second

// moveAgain is when a move of the journal is tried again.
const moveAgain = time.Minute

// engines is what an engine host keeps while its daemons begin and end in one process: what it knows of the other engine
// hosts, and its server. With fewer than three engine hosts there is no server. Its zero value is for use.
type engines struct {
	moves chan struct{} // capacity 1: all servers have met, so the next daemon can move the journal

	mu     sync.Mutex
	is     hosts.Cluster
	folder string
	id     *ca.Identity
	log    *slog.Logger
	facts  engine.Facts
	server *engine.Server
	met    bool // all servers have met

	ctx  context.Context //nolint:containedctx // it ends with Close
	end  context.CancelFunc
	work sync.WaitGroup
}

// begin reads what the host knows, and starts its server if there has to be one. It may be called again.
func (e *engines) begin(ctx context.Context, dir string, is hosts.Cluster, id *ca.Identity, log *slog.Logger) (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx == nil {
		e.ctx, e.end = context.WithCancel(context.WithoutCancel(ctx))
		e.moves = make(chan struct{}, 1)
	}
	e.is, e.folder, e.id, e.log = is, worker.Folder(dir), id, log
	if e.facts, err = engine.LoadFacts(e.folder); err != nil {
		return err
	}
	return e.serve(ctx)
}

// serve starts the server, if it does not run and there are enough engine hosts. mu is held.
func (e *engines) serve(ctx context.Context) (err error) {
	if e.server != nil || !e.facts.Many() {
		return nil
	}
	e.server, err = engine.Start(ctx, engine.Options{Identity: e.id, Folder: e.folder, Listen: e.is.Listen, Log: e.log}, e.facts.Engines)
	if err != nil {
		return fmt.Errorf("start the server of this engine host: %w", err)
	}
	server := e.server
	e.work.Go(func() {
		for server.Meet(e.ctx) == nil {
			e.mu.Lock()
			e.met = true
			stream := e.facts.Stream
			e.mu.Unlock()
			if stream || e.is.Joined() {
				return
			}
			select {
			case e.moves <- struct{}{}:
			default:
			}
			if !rest(e.ctx, moveAgain) {
				return
			}
		}
	})
	return nil
}

// learn takes in what is known of the engine hosts now, and keeps it. It begins no wait, so a renewal may call it.
func (e *engines) learn(read func() engine.Facts) {
	e.work.Go(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		facts := read()
		facts.Stream = facts.Stream || e.facts.Stream // it is never taken back while the cluster lasts
		if e.ctx.Err() != nil || facts.Equal(e.facts) {
			return
		}
		err := engine.StoreFacts(e.folder, facts)
		if err == nil {
			e.facts = facts
			if e.server != nil {
				err = e.server.Set(e.ctx, facts.Engines)
			} else {
				err = e.serve(e.ctx)
			}
		}
		if err != nil && e.ctx.Err() == nil {
			e.log.Error("this engine host does not follow a change of the engine hosts; it is tried again at the next one, or start Fairlead here again", "error", err)
		}
	})
}

// known is what this host knows of the engine hosts.
func (e *engines) known() engine.Facts {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.facts
}

// journal opens the journal of a leader. If all servers have met it is moved into their stream first.
func (e *engines) journal(ctx context.Context, path string) (journal.Journal, error) {
	e.mu.Lock()
	server, stream, met := e.server, e.facts.Stream, e.met
	e.mu.Unlock()
	if !stream && met {
		if err := e.move(ctx, path); err != nil {
			e.log.Error("the journal could not be copied to the other engine hosts, and stays on this one; it is tried again", "error", err)
		} else {
			stream = true
		}
	}
	switch {
	case !stream:
		return sqlite.Open(ctx, path)
	case server == nil:
		return nil, errors.New("the journal is in the stream of the engine hosts, and fewer than three are known; restore .fairlead/cluster/engines.json from a backup, or make the cluster anew: `fairlead cluster leave --force`")
	}
	return server.Open(ctx, path, func(why error) {
		e.log.Warn("this host waits until most of the engine hosts run", "why", why)
	})
}

// move copies the journal into the stream. From the moment at which that is kept on disk the journal is there.
func (e *engines) move(ctx context.Context, path string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.server.Move(ctx, path); err != nil {
		return err
	}
	facts := e.facts
	facts.Stream = true
	if err := engine.StoreFacts(e.folder, facts); err != nil {
		return err
	}
	e.facts = facts
	e.log.Info("the journal is replicated by the engine hosts", "copies", cluster.EnginesMin)
	return nil
}

// mirror keeps the journal's mirror of a host that does not lead, until ctx ends. It waits until the journal is in the stream.
func (e *engines) mirror(ctx context.Context, path string) {
	var j journal.Journal
	for {
		e.mu.Lock()
		server, stream := e.server, e.facts.Stream
		e.mu.Unlock()
		if server != nil && stream {
			var err error
			if j, err = server.Open(ctx, path, func(error) {}); err == nil {
				break
			} else if ctx.Err() == nil {
				e.log.Error("this engine host does not keep a copy of the journal beside its server; it is tried again", "error", err)
			}
		}
		if !rest(ctx, mirrorAgain) {
			return
		}
	}
	<-ctx.Done()
	if err := j.Close(); err != nil {
		e.log.Error("the copy of the journal on this host was not closed as it should", "error", err)
	}
}

// rest pauses; false: the context has ended.
func rest(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// Close ends the server.
func (e *engines) Close() error {
	if e.end == nil {
		return nil
	}
	e.end()
	e.work.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil {
		return nil
	}
	err := e.server.Close()
	e.server = nil
	return err
}
