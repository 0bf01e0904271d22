package lease

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/machine/host"

	"github.com/nats-io/nats.go/jetstream"
)

const second = host.BootTime(time.Second)

// cutOff is a bucket on a server that is cut off from its peers but not from its clients. It has an old state,
// stores nothing, and calls each compare-and-set a failed one. The tests with real servers are in package node.
type cutOff struct {
	jetstream.KeyValue
	has  map[string]entry
	asks []uint64 // the revisions that were expected
	dead bool     // it does not answer at all
}

type entry struct {
	jetstream.KeyValueEntry
	value    []byte
	revision uint64
}

func (e entry) Value() []byte    { return e.value }
func (e entry) Revision() uint64 { return e.revision }

func (c *cutOff) Update(_ context.Context, _ string, _ []byte, revision uint64) (uint64, error) {
	c.asks = append(c.asks, revision)
	if c.dead {
		return 0, context.DeadlineExceeded
	}
	return 0, fmt.Errorf("wrong last sequence: %w", jetstream.ErrKeyExists)
}

func (c *cutOff) Get(_ context.Context, key string) (jetstream.KeyValueEntry, error) {
	e, ok := c.has[key]
	switch {
	case c.dead:
		return nil, context.DeadlineExceeded
	case !ok:
		return nil, jetstream.ErrKeyNotFound
	}
	return e, nil
}

// keeper has a lease with revision 7 since 100 s.
func keeper(t *testing.T, c *cutOff) (k *Keeper, now *host.BootTime, reconnects *int) {
	t.Helper()
	now, reconnects = new(host.BootTime), new(int)
	*now = 100 * second
	g := host.NewGuard("b", "b-1", 1)
	g.Read(&host.Host{Name: "b", State: host.Joined, Boot: "boot1", Incarnation: 2}, "boot1")
	r, _ := g.Renew(*now)
	g.Stored(r, 7)
	clock := func() host.BootTime { *now += second / 2; return *now }
	return NewKeeper(&Store{kv: c}, g, clock, func() error { *reconnects++; return nil }, func(host.BootTime) { t.Error("a deadline moves without proof") }), now, reconnects
}

// "Wrong revision" of a server that is cut off is no proof that the lease has changed hands, and neither is its old
// entry. The host keeps its deadline and its revision, and asks another server after 3 s.
func TestWrongRevisionIsNoProof(t *testing.T) {
	old := []byte(`{"host":"b","incarnation":2,"daemon":"b-0","n":1,"closed":true}`)
	for name, c := range map[string]*cutOff{
		"an old entry": {has: map[string]entry{"b.2": {value: old, revision: 6}}},
		"no entry":     {},
		"no answer":    {dead: true},
	} {
		k, now, reconnects := keeper(t, c)
		for try := 1; try <= 6; try++ { // each takes half a second
			*now += 5 * second
			if err := k.Step(t.Context()); err == nil || c.dead && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
			if again := *reconnects; again != try/6 {
				t.Errorf("%s: %d reconnects after %d tries", name, again, try)
			}
		}
		k.Guard(func(g *host.Guard) {
			if end, held := g.Deadline(); end != 145*second || !held {
				t.Errorf("%s: the lease ends at %v", name, time.Duration(end))
			}
		})
		for _, revision := range c.asks {
			if revision != 7 || len(c.asks) != 6 {
				t.Errorf("%s: it expects the revisions %v", name, c.asks)
			}
		}
	}
}

// A close that a cut-off server refuses has closed nothing, and its old entry does not look like a renewal.
func TestCloseWithoutProof(t *testing.T) {
	now := 100 * second
	h := &host.Host{Name: "b", State: host.Joined, Incarnation: 2}
	c := &cutOff{has: map[string]entry{"b.2": {value: []byte(`{"host":"b","incarnation":2,"daemon":"b-1","n":1}`), revision: 7}}}
	b := NewBoard(&Store{kv: c}, func() host.BootTime { return now }, &host.Hosts{Hosts: map[string]*host.Host{"b": h}})
	if !b.saw("b", 2, 7, false) || b.saw("b", 2, 7, false) || b.saw("b", 2, 6, false) {
		t.Error("an old revision is a renewal, which would end a doubt")
	}
	now += 70 * second
	for range 2 {
		if err := b.Close(t.Context(), h); err == nil || b.Due(h) != host.CloseIsDue {
			t.Errorf("%v, then %s", err, b.Due(h))
		}
	}
	c.has["b.2"] = entry{value: []byte(`{"host":"b","incarnation":2,"daemon":"b-1","n":2}`), revision: 9} // it has caught up
	if err := b.Close(t.Context(), h); err == nil || b.Due(h) != host.NothingDue {
		t.Errorf("%v, then %s", err, b.Due(h))
	}
}
