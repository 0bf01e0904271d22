package lease

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/cluster"
	"github.com/fairlead-dev/fairlead/machine/host"

	"github.com/nats-io/nats.go/jetstream"
)

// heartbeat is how often a server says that there is nothing new.
const heartbeat = time.Second

// Board is the leader's view of all leases. Use NewBoard when a host begins to lead.
type Board struct {
	store *Store
	now   func() host.BootTime

	mu   sync.Mutex
	list map[string]*watched // by host
}

type watched struct {
	incarnation uint64
	host.Watch
}

// NewBoard begins to watch the hosts that the journal has.
func NewBoard(store *Store, now func() host.BootTime, hosts *host.Hosts) *Board {
	b := &Board{store: store, now: now, list: map[string]*watched{}}
	for _, h := range hosts.Hosts {
		b.of(h)
	}
	return b
}

// of is the watch of a host's incarnation in the journal. Entries of others say nothing: a host may write any.
func (b *Board) of(h *host.Host) *watched {
	w := b.list[h.Name]
	if w == nil || w.incarnation < h.Incarnation {
		w = &watched{h.Incarnation, host.NewWatch(b.now())}
		b.list[h.Name] = w
	}
	return w
}

// Follow takes in the entries as they change, until the context ends. seen gets each renewal, for host.Renew.
func (b *Board) Follow(ctx context.Context, seen func(host.Renew)) error {
	consumer, err := b.store.js.OrderedConsumer(ctx, cluster.LeaseStream, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy})
	if err != nil {
		return fmt.Errorf("watch the leases: %w", explain(err))
	}
	// A consumer ends with the server that has it. That is noticed after two heartbeats, long before a host is doubted.
	entries, err := consumer.Messages(jetstream.PullHeartbeat(heartbeat), jetstream.PullExpiry(3*heartbeat))
	if err != nil {
		return fmt.Errorf("watch the leases: %w", explain(err))
	}
	defer entries.Stop()
	stop := context.AfterFunc(ctx, entries.Stop)
	defer stop()
	for {
		got, err := entries.Next()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watch the leases: %w", explain(err))
		}
		if renewed, is := b.took(got); is {
			seen(renewed)
		}
	}
}

// took takes in one entry, and reports whether it is a renewal of the present incarnation.
func (b *Board) took(got jetstream.Msg) (host.Renew, bool) {
	at, err := got.Metadata()
	name, incarnation, ok := parseKey(strings.TrimPrefix(got.Subject(), cluster.LeaseSubjects))
	if err != nil || !ok {
		return host.Renew{}, false
	}
	e := parseEntry(name, incarnation, got.Data())
	return host.Renew{Name: name, Incarnation: incarnation}, b.saw(name, incarnation, at.Sequence.Stream, e.Closed) && !e.Closed
}

// saw takes in a revision, and reports whether it is new.
func (b *Board) saw(name string, incarnation, revision uint64, closed bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.list[name]
	if w == nil || w.incarnation != incarnation || revision <= w.Revision {
		return false
	}
	w.Saw(revision, closed, b.now())
	return true
}

// Due says what the leader has to do about a host that has joined, is doubted or drains.
func (b *Board) Due(h *host.Host) host.Due {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.of(h)
	return w.Due(b.now(), h.RemovedBy != "")
}

// Close closes the lease of a host, on the last revision that was seen. If it fails, what is stored now is taken
// in: it may be a renewal.
func (b *Board) Close(ctx context.Context, h *host.Host) error {
	b.mu.Lock()
	w := *b.of(h)
	b.mu.Unlock()
	revision, err := b.store.set(ctx, Entry{Host: h.Name, Incarnation: w.incarnation, Closed: true}, w.Revision)
	if err == nil {
		b.saw(h.Name, w.incarnation, revision, true)
		return nil
	}
	seen, revision, lookErr := b.store.get(ctx, h.Name, w.incarnation)
	if lookErr == nil {
		b.saw(h.Name, w.incarnation, revision, seen.Closed)
	}
	if lookErr == nil && seen.Closed {
		return nil
	}
	return fmt.Errorf("close the lease of host %s: %w", h.Name, err)
}
