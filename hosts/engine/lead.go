package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/lease"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/process/boottime"
)

const (
	stepEvery = time.Second / 2 // how often it is looked whether a renewal is due
	lookEvery = time.Second / 2 // how often a host looks at the leader's lease
	ledWait   = 3 * time.Second // for an answer whether one has led: a question while the servers elect one of them gets none
	jitterMax = time.Second     // so that two hosts do not claim the lead at one time
)

// Lead is the leader's own lease, from the claim on. Its methods may be called from many goroutines.
type Lead struct {
	store  *lease.Store
	name   string
	daemon string

	mu   sync.Mutex
	term *host.Term
}

// leases is the store of the leader's lease, which is made on so many servers if it is not there; 0: then it is not made. It is looked up
// once: that needs a server that leads a stream, a read does not.
func (s *Replica) leases(ctx context.Context, copies int) (*lease.Store, error) {
	if known := s.lease.Load(); known != nil {
		return known, nil
	}
	js, err := jetstream.New(s.nc)
	if err != nil {
		return nil, err
	}
	store, err := lease.Open(ctx, js, copies)
	if err == nil {
		s.lease.Store(store)
	}
	return store, err
}

// Claim claims the lead, on the revision that the lease's entry has as far as this host knows.
func (s *Replica) Claim(ctx context.Context, revision uint64) (*Lead, error) {
	store, err := s.leases(ctx, cluster.EnginesMin)
	if err != nil {
		return nil, err
	}
	l := &Lead{store: store, name: s.o.Identity.Name, daemon: rand.Text()}
	sent := boottime.Now()
	stored, err := store.Set(ctx, l.entry(0), revision)
	if err != nil {
		seen, at, failed := store.Get(ctx) // the answer may have been lost
		if failed != nil || at <= revision || seen != l.entry(0) {
			return nil, fmt.Errorf("claim the lead of the team: %w", err)
		}
		stored = at
	}
	l.term = host.NewTerm(stored, sent)
	return l, nil
}

// Leader says which host has the leader's lease, and the revision of that; empty: none.
func (s *Replica) Leader(ctx context.Context) (name string, revision uint64, err error) {
	store, err := s.leases(ctx, cluster.EnginesMin)
	if err != nil {
		return "", 0, err
	}
	e, revision, err := store.Get(ctx)
	return e.Host, revision, err
}

// Led reports whether a host has ever claimed the lead, as far as the servers answer. Unlike Leader it makes nothing.
func (s *Replica) Led(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, ledWait)
	defer cancel()
	store, err := s.leases(ctx, 0)
	if err != nil {
		return false
	}
	e, _, err := store.Get(ctx)
	return err == nil && e.Host != ""
}

// Take waits until this host may lead, and claims the lease: it was not renewed for long, or is handed over to this
// host, or belongs to an earlier daemon of this host. This host lets others claim its own earlier lease for the time after, unless one
// hands the lease over meanwhile. refused is called once, with the reason why the first claim failed.
func (s *Replica) Take(ctx context.Context, after time.Duration, refused func(error)) (*Lead, error) {
	patience := host.LeaderSilence + host.BootTime(mrand.N(jitterMax)) //nolint:gosec // it spreads claims
	return take(ctx, s.o.Identity.Name, patience, host.BootTime(after), boottime.Now, s.Leader, s.Claim, refused)
}

// take is Take with its clock and its store. A read that fails does not restart the silence, and a claim that fails is
// repeated: one that succeeds proves that no renewal was stored since the revision was seen.
func take[L any](ctx context.Context, own string, patience, after host.BootTime, now func() host.BootTime,
	leader func(context.Context) (string, uint64, error),
	claim func(context.Context, uint64) (L, error), refused func(error),
) (none L, _ error) {
	began, said := now(), false
	watch, first := host.NewWatch(began), uint64(0) // the revision that was seen first
	for ; ctx.Err() == nil; retry.Rest(ctx, lookEvery) {
		asked := now()
		name, revision, err := leader(ctx)
		if err == nil {
			watch.Saw(revision, false, now())
			first = cmp.Or(first, revision)
			if revision < watch.Revision { // of a server that lags: the host that it names led before
				err = errOld
			}
		}
		silence := asked - watch.Seen
		switch {
		case err == nil && name == own && revision == first && asked-began < after, // this host could not lead; another one may
			(err != nil || name != own) && (silence < patience || !host.TryToLead(silence)),
			err != nil && watch.Revision == 0: // it was never read
			continue
		}
		l, err := claim(ctx, watch.Revision)
		if err == nil {
			return l, nil
		}
		if !said && ctx.Err() == nil {
			refused(err)
		}
		said = true
	}
	return none, ctx.Err()
}

var errOld = errors.New("the server showed an earlier entry")

func (l *Lead) entry(n uint64) lease.Entry { return lease.Entry{Host: l.name, Daemon: l.daemon, N: n} }

// Keep renews the lease until another host has claimed it or ctx ends. extended gets each new deadline of the sessions on this machine.
func (l *Lead) Keep(ctx context.Context, extended func(end host.BootTime)) {
	for ; !l.over(); retry.Rest(ctx, stepEvery) {
		if ctx.Err() != nil {
			return
		}
		l.mu.Lock()
		n, revision, due := l.term.Renew(boottime.Now())
		was := l.term.Deadline()
		l.mu.Unlock()
		if !due {
			continue
		}
		stored, err := l.store.Set(ctx, l.entry(n), revision)
		seen := l.entry(n)
		if err != nil {
			if seen, stored, err = l.store.Get(ctx); err != nil || stored == 0 {
				continue
			}
		}
		l.mu.Lock()
		l.term.Saw(stored, seen.N, seen.Daemon == l.daemon)
		end := l.term.Deadline()
		l.mu.Unlock()
		if end > was {
			extended(end)
		}
	}
}

// Give hands the lease over to another engine host, which claims it when it sees that.
func (l *Lead) Give(ctx context.Context, name string) error {
	for {
		l.mu.Lock()
		revision, over := l.term.Revision(), l.term.Over()
		l.mu.Unlock()
		if over {
			return errors.New("another engine host has claimed the leader's lease, so this one cannot hand over")
		}
		stored, err := l.store.Set(ctx, lease.Entry{Host: name, Daemon: l.daemon + "-gives"}, revision)
		l.mu.Lock()
		moved := l.term.Revision() != revision // by a renewal
		if err == nil {
			l.term.Saw(stored, 0, false)
		}
		l.mu.Unlock()
		if err == nil || !moved {
			return err
		}
	}
}

func (l *Lead) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term.Over()
}

// Confirmed reports whether no other host can lead now.
func (l *Lead) Confirmed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term.Confirmed(boottime.Now())
}

// Since is when the last renewal was sent that was acknowledged.
func (l *Lead) Since() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Add(-time.Duration(boottime.Now() - l.term.Acked()))
}

// Deadline is when the leased sessions on this machine end, unless the lease is renewed.
func (l *Lead) Deadline() host.BootTime {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term.Deadline()
}
