package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/jetstream"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/lease"
	"github.com/fairlead-dev/fairlead/hosts/node"
	"github.com/fairlead-dev/fairlead/internal/retry"
)

const (
	metEvery   = 250 * time.Millisecond // between two looks whether all servers have met
	meetQuiet  = 30 * time.Second       // until the log says that they have not
	createWait = 5 * time.Second        // for the servers to choose one that creates streams
	againEvery = time.Second            // between two tries to open the journal
	local      = "127.0.0.1:0"          // for programs of this machine: none of them connects, but the server wants a port
)

// Options say how the server of an engine host starts.
type Options struct {
	Identity *ca.Identity
	Folder   string // of the cluster; the server's store is in it
	Listen   string // HOST:PORT for hosts; the server listens on the next port
	Log      *slog.Logger

	check func(store string) error // checkStore
}

// Replica is the part of this host in the journal that the engine hosts keep: its server, and what the leader asks of it. Use Start.
type Replica struct {
	o    Options
	node *node.Node
	nc   *nats.Conn

	ctx  context.Context //nolint:containedctx // it ends with Close
	end  context.CancelFunc
	work sync.WaitGroup

	lease    atomic.Pointer[lease.Store] // nil: it was not found yet
	quiet    time.Duration               // meetQuiet
	joinWait time.Duration               // the constant
	damaged  atomic.Bool                 // the copy of the journal here
	outside  atomic.Pointer[string]      // the stream whose group this server could not join; nil: none is known
	fault    atomic.Pointer[string]      // why the server has no store; nil: it has

	mu   sync.Mutex
	list map[string]cluster.EngineHost
}

// Start starts the server of this host, which connects to those of the other engine hosts.
func Start(ctx context.Context, o Options, engines []cluster.EngineHost) (*Replica, error) {
	if o.check == nil {
		o.check = checkStore
	}
	s := &Replica{o: o, quiet: meetQuiet, joinWait: joinWait}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.take(engines)
	routes := &node.Routes{}
	var err error
	if routes.Address, err = (cluster.EngineHost{Name: o.Identity.Name, Address: o.Listen}).Routes(); err != nil {
		return nil, err
	}
	for _, e := range engines {
		at, err := e.Routes()
		if err != nil {
			return nil, err
		}
		if e.Name != o.Identity.Name {
			routes.Others = append(routes.Others, node.Peer{Name: e.Name, Address: at})
		}
	}
	if s.node, err = node.Start(ctx, node.Options{
		Identity: o.Identity, Members: s, Dir: filepath.Join(o.Folder, StoreFolder), Address: local, Routes: routes, Log: o.Log,
		Check: o.check,
	}); err != nil {
		return nil, err
	}
	if s.nc, err = s.node.Connect(ctx, func(err error) {
		if err != nil {
			o.Log.Error("the connection to the server of this host has ended", "error", err)
		}
	}); err != nil {
		return nil, errors.Join(err, s.node.Stop(ctx))
	}
	if damage := s.node.Damage(); damage != nil {
		s.foundDamage(damage)
	}
	s.work.Go(func() { s.guard(s.ctx, s) })
	return s, nil
}

func (s *Replica) take(engines []cluster.EngineHost) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = make(map[string]cluster.EngineHost, len(engines))
	for _, e := range engines {
		if e.Name == s.o.Identity.Name { // it may have been known by keys of before
			e.Key = s.o.Identity.PublicKey()
		}
		s.list[e.Name] = e
	}
}

// Member implements cluster.Members.
func (s *Replica) Member(name string) (cluster.Member, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.list[name]
	return cluster.Member{Name: e.Name, Role: cluster.Engine, Key: e.Key}, ok
}

// Set takes in which engine hosts the team has now. The connections of others are closed.
func (s *Replica) Set(ctx context.Context, engines []cluster.EngineHost) error {
	s.take(engines)
	return s.node.Recheck(ctx)
}

// Expel removes the server of an engine host that has left from the group, which needs a majority. Its copies are made again on
// another one.
func (s *Replica) Expel(ctx context.Context, name string) error { return s.node.Expel(ctx, name) }

// Meet waits until the servers of all engine hosts are connected to this one, and have an empty stream for the journal and a
// place for the leader's lease. waits gets what they wait for, as often as it is looked at. It is logged once they have had some time.
func (s *Replica) Meet(ctx context.Context, waits func(cluster.Unreplicated)) error {
	tick := time.NewTicker(metEvery)
	defer tick.Stop()
	said, began := "", time.Now()
	for {
		is := s.meets(ctx)
		if is.Code == "" {
			return nil
		}
		waits(is)
		if now := fmt.Sprint(is); time.Since(began) >= s.quiet && now != said && ctx.Err() == nil {
			said = now
			s.o.Log.Warn("the servers of the engine hosts are not connected to each other yet; they try again, and `fairlead hosts` says what to do", "code", is.Code, "hosts", is.Hosts, "error", is.Fault)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// meets says which engine hosts and streams are still missing; no code: none.
func (s *Replica) meets(ctx context.Context) cluster.Unreplicated {
	names, err := s.node.Peers()
	if err != nil {
		return cluster.Unreplicated{Code: cluster.ServersStart, Fault: err.Error()}
	}
	switch missing, all := s.missing(names); {
	case all < cluster.EnginesMin:
		return cluster.Unreplicated{Code: cluster.FewEngineHosts}
	case len(missing) > 0:
		return cluster.Unreplicated{Code: cluster.NotConnected, Hosts: missing}
	}
	if err := s.make(ctx); err != nil {
		return cluster.Unreplicated{Code: cluster.NoStream, Fault: err.Error()}
	}
	return cluster.Unreplicated{}
}

// make makes what the servers keep together, if it is not there.
func (s *Replica) make(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, createWait)
	defer cancel()
	if err := jetstream.Create(ctx, s.nc, cluster.JournalStream, cluster.EnginesMin); err != nil {
		return err
	}
	_, _, err := s.Leader(ctx)
	return err
}

// missing are the other engine hosts without those named; all is how many the team has.
func (s *Replica) missing(names []string) (missing []string, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.list)) {
		if name != s.o.Identity.Name && !slices.Contains(names, name) {
			missing = append(missing, name)
		}
	}
	return missing, len(s.list)
}

// Move copies a SQLite journal into the stream. Nothing may append meanwhile. It may be repeated.
func (s *Replica) Move(ctx context.Context, path string) (err error) {
	from, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	return jetstream.Fill(ctx, s.nc, cluster.JournalStream, from)
}

// Open opens the journal of this host, whose mirror is the SQLite file at path. While no majority of the engine hosts
// runs, it waits; waiting is called once, with the reason. After a *jetstream.Damage another server leads the stream, and if there is one
// still, it is returned.
func (s *Replica) Open(ctx context.Context, path string, waiting func(why error)) (journal.Journal, error) {
	damaged := false
	for said := false; ; said = true {
		j, err := jetstream.Open(ctx, s.nc, jetstream.Options{Stream: cluster.JournalStream, Mirror: path, Report: s.report})
		if err == nil {
			return j, nil
		}
		if errors.As(err, new(*jetstream.OtherFormat)) {
			return nil, err
		}
		if damage, is := errors.AsType[*jetstream.Damage](err); is {
			if damaged {
				return nil, err
			}
			damaged = true
			s.away(damage)
			continue
		}
		if !said {
			waiting(err)
		}
		if !retry.Rest(ctx, againEvery) {
			return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// report records why an open journal has stopped. It does not wait for a server: the journal may be closed meanwhile.
func (s *Replica) report(err error) {
	s.o.Log.Error("the journal of the team on this host has stopped", "error", err)
	if damage, is := errors.AsType[*jetstream.Damage](err); is {
		s.work.Go(func() { s.away(damage) })
	}
}

// Close ends the connection and the server.
func (s *Replica) Close() error {
	s.end()
	s.work.Wait()
	s.nc.Close()
	return s.node.Stop(context.Background())
}
