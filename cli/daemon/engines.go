package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/cli/daemon/worker"
	"github.com/fairlead-dev/fairlead/cli/hosts"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/jetstream"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/engine"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// mirrorAgain is how often a host that does not lead looks whether the journal is in the stream.
const mirrorAgain = time.Second

// againSoon is when something that the servers did not do is asked for again.
const againSoon = time.Second

// moveAgain is when a move of the journal is tried again.
const moveAgain = time.Minute

// engines is what an engine host keeps while its daemons begin and end in one process: what it knows of the other engine
// hosts, and its server. With fewer than three engine hosts there is no server. Its zero value is for use.
type engines struct {
	space *workspace.Workspace // locked while the process works; nil: each daemon locks it. Only the goroutine of `fairlead up` uses it
	said  bool                 // that it is ready, which is said once. Only that goroutine uses it, and the host that it runs
	moves chan struct{}        // capacity 1: the next daemon can move the journal, into the stream or out of it
	head  uint64               // where the journal ended for the daemon before. Only that goroutine uses it
	cut   chan struct{}        // capacity 1: this leader was asked to end, and cannot store that
	plain chan struct{}        // capacity 1: the leader has the journal alone, and this is an ordinary host

	signals  chan os.Signal // that the process gets; nil: they end it
	stopping atomic.Bool    // this process was asked to end: then a leader does not go on as a host, nor a host as the leader

	// copies of the journal, as they were seen last. Not below mu: the controller of hosts asks for them while it holds a lock of its own,
	// and learn asks that controller.
	copies atomic.Pointer[[]cluster.Copy]
	gap    gap

	// What answers to other hosts and renewals of the lease need is not below mu, which is held while a server starts again.
	leads atomic.Pointer[engine.Lead]    // this host leads a team with a replicated journal; nil: it does not
	shims atomic.Pointer[sessions.Shims] // of the daemon that leads

	mu       sync.Mutex
	is       hosts.Cluster
	dir      string // of the repository
	folder   string // of the cluster
	id       *ca.Identity
	log      *slog.Logger
	facts    engine.Facts
	server   *engine.Replica
	stop     func()             // ends what works for the server
	met      bool               // all servers have met
	removed  map[string]bool    // servers that this leader takes out of the group, by name
	alone    bool               // by the journal, no other host is an engine host any longer
	applying bool               // what the server could not follow is tried again
	looked   bool               // the mirror was found sound
	compared time.Time          // when the copy of the server was found whole
	lost     chan struct{}      // closed when another host has claimed the lead
	term     context.Context    //nolint:containedctx // it ends with the lead
	unlead   func()             // ends the renewals of the lead, and waits for that
	copy     *jetstream.Journal // the open journal; nil: it is not in the stream, or not open

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
		e.moves, e.cut, e.plain = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	}
	e.is, e.dir, e.folder, e.id, e.log = is, dir, worker.Folder(dir), id, log
	if e.facts, err = engine.LoadFacts(e.folder); err != nil {
		return err
	}
	if e.server == nil && len(e.facts.Engines) > 0 && !e.facts.Stream && !e.facts.Many() { // the end of back may have been interrupted
		if err := removeStore(e.folder); err != nil {
			return err
		}
	}
	return e.serve(ctx)
}

// ring signals that something is due; one signal waits at most.
func ring(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// learn takes in what is known of the engine hosts now, and keeps it. It begins no wait, so a renewal may call it.
func (e *engines) learn(read func() engine.Facts) {
	e.work.Go(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		facts := read()
		facts.Stream = facts.Stream || e.facts.Stream // a leader takes it back by itself: see back
		switch {
		case e.ctx.Err() != nil || facts.Equal(e.facts):
			return
		case e.facts.Lost && len(facts.Engines) > 1: // they are taken out of the journal just now
			return
		case facts.Stream && !facts.Many(): // the servers are needed until the journal is out of their stream
			if e.alone = len(facts.Engines) == 1 && e.leads.Load() != nil; e.alone {
				ring(e.moves)
			}
			return
		}
		err := engine.StoreFacts(e.folder, facts)
		if err == nil {
			e.facts = facts
			err = e.applyMembership()
		}
		if err != nil && e.ctx.Err() == nil {
			e.log.Error("this engine host could not apply a change of the engine hosts; it tries again", "error", err)
		}
	})
}

// removeMembers takes the servers of engine hosts that have left out of the group, while this host leads. mu is held.
func (e *engines) removeMembers(gone []string) {
	leads, server := e.leads.Load(), e.server
	if leads == nil || server == nil {
		return
	}
	maps.DeleteFunc(e.removed, func(name string, _ bool) bool { return !slices.Contains(gone, name) }) // they have joined again
	for _, name := range gone {
		if e.removed[name] {
			continue
		}
		e.removed[name] = true
		e.work.Go(func() {
			for said := false; e.leading() == leads && e.removes(name); said = true {
				err := server.Expel(e.ctx, name)
				if err == nil {
					e.log.Info("the server of an engine host that has left was removed from the group", "host", name)
					return
				}
				if !said {
					e.log.Warn("the server of an engine host that has left could not be removed from the group; this host tries again",
						"host", name, "error", err)
				}
				if !retry.Rest(e.ctx, againSoon) {
					return
				}
			}
		})
	}
}

// removes reports whether a server is to go, as far as this leader knows.
func (e *engines) removes(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.removed[name]
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
	server, stream, met, alone := e.server, e.facts.Stream, e.met, e.alone
	e.mu.Unlock()
	if stream && alone {
		if err := e.returnToSQLite(ctx, path); err != nil {
			return nil, fmt.Errorf("take the journal back to this machine: %w", err)
		}
		stream = false
	}
	if !stream && met && !alone {
		if err := e.move(ctx, path); err != nil {
			e.gap.set(cluster.Unreplicated{Code: cluster.CopyFailed, Fault: err.Error()})
			e.log.Error("the journal could not be copied to the other engine hosts, and stays on this one; it is tried again", "error", err)
		} else {
			stream = true
		}
	}
	switch {
	case !stream:
		return sqlite.Open(ctx, path)
	case server == nil:
		return nil, errors.New("the journal is in the stream of the engine hosts, and fewer than three are known; restore .fairlead/cluster/engines.json from a backup, or make a new cluster: `fairlead cluster leave --force`")
	}
	if err := e.claimFirst(ctx); err != nil {
		return nil, err
	}
	ctx, done := e.untilDeposed(ctx)
	defer done()
	if err := e.verify(ctx, path); err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	j, err := e.opened(server.Open(ctx, path, func(why error) {
		e.log.Warn("this host waits until most of the engine hosts run", "why", why)
	}))
	for err == nil && !e.leading().Confirmed() { // another host may lead, which an append of this one would end
		if !retry.Rest(ctx, confirmEvery) {
			err = errors.Join(ctx.Err(), j.Close())
		}
	}
	if err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	return j, nil
}

// opened notes the journal that is open.
func (e *engines) opened(j journal.Journal, err error) (journal.Journal, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.copy = nil
	if err == nil {
		e.copy, _ = j.(*jetstream.Journal)
	}
	return j, err
}

// noStore says why the server of this host has no store now; empty: it has, or this host has no server.
func (e *engines) noStore() string {
	if e == nil {
		return ""
	}
	e.mu.Lock()
	server := e.server
	e.mu.Unlock()
	if server == nil {
		return ""
	}
	return server.Fault()
}

// state says whether a daemon that leads knows the present state of the team.
func (e *engines) state() api.Leader {
	is := api.Leader{Leads: true, NoStore: e.noStore()}
	leads := e.leading()
	if leads == nil || leads.Confirmed() {
		return is
	}
	since := leads.Since()
	is.NoLeaderSince = &since
	if at := e.asOf()(); !at.IsZero() {
		is.AsOf = &at
	}
	return is
}

// move copies the journal into the stream. From the moment at which that is kept on disk the journal is there. Other hosts see it
// when the lead is claimed for the first time, and may lead from then on.
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

// moved reports whether the journal is in the stream. The leader says so with each renewal, but it may have died before the first
// one; the lease's entry is there since the journal is. The servers of this host and of one other are enough to read it: that of the
// leader that died need not have met this one.
func (e *engines) moved(ctx context.Context) (*engine.Replica, bool) {
	e.mu.Lock()
	server, stream := e.server, e.facts.Stream
	e.mu.Unlock()
	if server == nil || stream || !server.Led(ctx) {
		return server, stream
	}
	e.learn(func() engine.Facts {
		facts := e.facts
		facts.Stream = true
		return facts
	})
	return server, true
}

// returnToSQLite takes the journal out of the stream: the file at path, the mirror, is the journal from then on. No other host leads, since
// by the journal there is no other engine host.
func (e *engines) returnToSQLite(ctx context.Context, path string) error {
	e.mu.Lock()
	server := e.server
	e.mu.Unlock()
	for {
		j, err := server.Open(ctx, path, func(error) {})
		if err != nil {
			return err
		}
		has, _, err := j.Head(ctx)
		if err = errors.Join(err, j.Close()); err != nil {
			return err
		}
		if has >= e.head {
			break
		}
		if !retry.Rest(ctx, mirrorAgain) { // a server may show the past
			return ctx.Err()
		}
	}
	e.mu.Lock()
	facts := engine.Facts{Engines: slices.DeleteFunc(slices.Clone(e.facts.Engines),
		func(is cluster.EngineHost) bool { return is.Name != e.is.Name })}
	err := e.is.Lead(e.dir)
	if err == nil {
		err = engine.StoreFacts(e.folder, facts)
	}
	if err == nil {
		e.facts, e.alone = facts, false
	}
	e.mu.Unlock()
	if err != nil {
		return err
	}
	e.release()
	e.log.Info("the journal is on this machine alone")
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unserve()
}

// stopReplica makes an ordinary host of this machine: the leader has the journal alone.
func (e *engines) stopReplica() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.is.Follow(e.dir, e.is.Worker(e.facts))
	if err == nil {
		e.log.Info("the journal is on the leader's machine alone, so this machine is an ordinary host of the team now")
		e.facts = engine.Facts{}
		err = e.unserve()
	}
	return err
}

// claimFirst claims the lead of a team whose journal has just moved. Until that no other host can.
func (e *engines) claimFirst(ctx context.Context) error {
	for {
		e.mu.Lock()
		err, first := error(nil), e.leads.Load() == nil
		if first {
			err = e.claim(ctx)
		}
		e.mu.Unlock()
		if err == nil {
			if first {
				e.log.Info("if this host is lost, another engine host leads")
			}
			return nil
		}
		if !retry.Rest(ctx, againSoon) {
			return err
		}
	}
}

// claim claims the lead on the entry that the lease has now. mu is held.
func (e *engines) claim(ctx context.Context) error {
	_, revision, err := e.server.Leader(ctx)
	if err != nil {
		return err
	}
	leads, err := e.server.Claim(ctx, revision)
	if err == nil {
		e.keep(leads)
	}
	return err
}

// keep renews the lease from now on. mu is held.
func (e *engines) keep(leads *engine.Lead) {
	keeping, stop := context.WithCancel(e.ctx)
	lost, ended := make(chan struct{}), make(chan struct{})
	e.leads.Store(leads)
	e.lost, e.term, e.removed = lost, keeping, map[string]bool{}
	e.unlead = func() { stop(); <-ended }
	server := e.server
	go func() {
		defer close(ended)
		looking, unlook := context.WithCancel(keeping)
		looked := make(chan struct{})
		go func() { defer close(looked); e.lookAtCopies(looking, server) }()
		defer func() { <-looked }()
		leads.Keep(keeping, e.extend)
		unlook() // the streams are the next leader's
		if keeping.Err() == nil {
			close(lost)
		}
	}()
}

// extend moves the deadline of the sessions on this machine.
func (e *engines) extend(end host.BootTime) {
	shims := e.shims.Load()
	if shims == nil {
		return
	}
	if err := shims.Extend(e.ctx, end); err != nil {
		e.log.Warn("a session on this machine did not accept its new deadline; it ends unless a later deadline reaches it", "error", err)
	}
}

// leading is the lead of this host; nil: it has none.
func (e *engines) leading() *engine.Lead {
	if e == nil {
		return nil
	}
	return e.leads.Load()
}

// deposed is closed when another host has claimed the lead; nil: this one leads without a lease.
func (e *engines) deposed() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lost
}

// release ends the lead of this host.
func (e *engines) release() {
	e.mu.Lock()
	unlead := e.unlead
	e.leads.Store(nil)
	e.shims.Store(nil)
	e.lost, e.unlead = nil, nil
	e.mu.Unlock()
	if unlead != nil {
		unlead()
	}
}

// await waits until this host may lead, and has claimed that: the leader's lease is silent, or it is of an earlier daemon of
// this host and some time has passed. It waits for the journal to be in the stream.
func (e *engines) await(ctx context.Context, after time.Duration) error {
	said := ""
	for {
		server, stream := e.moved(ctx)
		e.mu.Lock()
		leader := e.facts.Leader
		e.mu.Unlock()
		its, own := e.configs()
		if its != own && said != its+own {
			e.log.Error("this host cannot lead if the leader is lost", "why", app.OtherConfig(leader, its, own))
		}
		said = its + own
		if server != nil && stream && its == own && !server.Damaged() {
			leads, err := e.take(ctx, server, after)
			if err == nil {
				e.log.Info("this host has claimed the leader's lease, because the leader was silent, has ended or has handed over")
				e.mu.Lock()
				e.keep(leads)
				e.mu.Unlock()
				return nil
			}
		}
		if !retry.Rest(ctx, mirrorAgain) {
			return ctx.Err()
		}
	}
}

// take claims the lead when this host may, as long as it has the configuration of the leader.
func (e *engines) take(ctx context.Context, server *engine.Replica, after time.Duration) (*engine.Lead, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for same := true; same && retry.Rest(ctx, mirrorAgain); {
			its, own := e.configs()
			same = its == own && !server.Damaged()
		}
		stop()
	}()
	return server.Take(ctx, after, func(err error) { e.log.Info("this host could not lead yet; it tries again", "error", err) })
}

// Close ends the server.
func (e *engines) Close() (err error) {
	defer func() {
		if e.space != nil {
			err = errors.Join(err, e.space.Close())
			e.space = nil
		}
	}()
	if e.end == nil {
		return nil
	}
	e.release()
	e.end()
	e.work.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil {
		return nil
	}
	err = e.server.Close()
	e.server = nil
	return err
}
