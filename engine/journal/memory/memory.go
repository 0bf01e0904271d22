// Package memory keeps a journal in memory: the same ledger on a slate.
//
// It is for tests and simulations. It starts no goroutine and touches nothing
// outside of the process, so it works inside a synctest bubble. Several handles may
// share one slate, as several processes share one file: [Journal.Again] gives
// another, and what was appended outlives the handle that appended it, which is how a
// test plays a crash and a restart.
//
// The one promise: it answers as the durable backends do, and forgets all with the process.
package memory

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"sort"
	"sync"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// slate is what handles share. A stored change is never altered, so a reader may keep
// a slice of changes after it let go of the lock.
type slate struct {
	mu        sync.RWMutex
	changes   []journal.Change    // Seq n at n-1
	streams   map[string][]uint64 // entity to the Seqs of its changes, ascending
	snapshots []journal.Snapshot  // ascending by Seq
	sum       journal.Summer
	notifier  journal.Notifier
}

// Journal is one handle.
type Journal struct {
	slate  *slate
	closed chan struct{}
	once   sync.Once
}

var _ journal.Journal = (*Journal)(nil)

// New gives a handle on an empty journal.
func New() *Journal {
	return (&Journal{slate: &slate{streams: map[string][]uint64{}}}).Again()
}

// Again gives another handle on the same journal, also where this one is closed.
func (j *Journal) Again() *Journal {
	return &Journal{slate: j.slate, closed: make(chan struct{})}
}

// Append puts a batch at the end; see [journal.Journal].
func (j *Journal) Append(ctx context.Context, batch []journal.Change, expect ...journal.Expect) (uint64, error) {
	if err := journal.CheckBatch(batch, expect); err != nil {
		return 0, err
	}
	if err := j.ready(ctx); err != nil {
		return 0, fmt.Errorf("append to journal: %w", err)
	}
	last, err := j.slate.append(batch, expect)
	if err == nil && len(batch) > 0 {
		j.slate.notifier.Notify()
	}
	return last, err
}

func (s *slate) append(batch []journal.Change, expect []journal.Expect) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range expect {
		has := uint64(len(s.streams[e.Entity]))
		if e.Entity == journal.Whole {
			has = uint64(len(s.changes))
		}
		if has != e.Version {
			return 0, &journal.Conflict{Entity: e.Entity, Want: e.Version, Has: has}
		}
	}
	_, prev := s.head()
	for _, c := range batch {
		c.Seq = uint64(len(s.changes)) + 1
		c.Version = uint64(len(s.streams[c.Entity])) + 1
		c.Time = c.Time.Round(0).UTC() // Round drops the monotonic reading, which no other backend would keep
		c.Data = bytes.Clone(c.Data)
		if len(c.Data) == 0 {
			c.Data = nil
		}
		c.Hash = s.sum.Sum(prev, &c)
		prev = c.Hash
		s.changes = append(s.changes, c)
		s.streams[c.Entity] = append(s.streams[c.Entity], c.Seq)
	}
	return uint64(len(s.changes)), nil
}

func (s *slate) head() (uint64, journal.Hash) {
	if len(s.changes) == 0 {
		return 0, journal.Hash{}
	}
	last := &s.changes[len(s.changes)-1]
	return last.Seq, last.Hash
}

// Read yields what the query names; see [journal.Journal].
func (j *Journal) Read(ctx context.Context, q journal.Query) iter.Seq2[journal.Change, error] {
	return func(yield func(journal.Change, error) bool) {
		changes, seqs := j.slate.part(q)
		n := len(changes)
		if q.Entity != "" {
			n = len(seqs)
		}
		for i := range n {
			if err := j.ready(ctx); err != nil {
				yield(journal.Change{}, fmt.Errorf("read journal: %w", err))
				return
			}
			var c journal.Change
			if q.Entity == "" {
				c = changes[i]
			} else {
				c = changes[seqs[i]-1]
			}
			c.Data = bytes.Clone(c.Data) // the reader may do with it what it likes
			if !yield(c, nil) {
				return
			}
		}
		if err := j.ready(ctx); err != nil && n == 0 {
			yield(journal.Change{}, fmt.Errorf("read journal: %w", err))
		}
	}
}

// part gives the changes a query names: without an entity just those; with one all
// changes, and the Seqs of those that are meant.
func (s *slate) part(q journal.Query) ([]journal.Change, []uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	until := uint64(len(s.changes))
	if q.Until != 0 {
		until = min(until, q.Until)
	}
	after := min(q.After, until)
	if q.Entity == "" {
		return s.changes[after:until:until], nil
	}
	seqs := s.streams[q.Entity]
	from := sort.Search(len(seqs), func(i int) bool { return seqs[i] > after })
	to := sort.Search(len(seqs), func(i int) bool { return seqs[i] > until })
	return s.changes, seqs[from:to:to]
}

// Watch reads on as changes come; see [journal.Journal].
func (j *Journal) Watch(ctx context.Context, q journal.Query) iter.Seq2[journal.Change, error] {
	return journal.Follow(ctx, q, j.Read, &j.slate.notifier, j.closed)
}

// Head is the last Seq and its hash; see [journal.Journal].
func (j *Journal) Head(ctx context.Context) (uint64, journal.Hash, error) {
	if err := j.ready(ctx); err != nil {
		return 0, journal.Hash{}, fmt.Errorf("read the journal's head: %w", err)
	}
	j.slate.mu.RLock()
	defer j.slate.mu.RUnlock()
	seq, hash := j.slate.head()
	return seq, hash, nil
}

// SaveSnapshot keeps a snapshot of this history; see [journal.Journal].
func (j *Journal) SaveSnapshot(ctx context.Context, s journal.Snapshot) error {
	if err := journal.CheckSnapshot(&s); err != nil {
		return err
	}
	if err := j.ready(ctx); err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	j.slate.mu.Lock()
	defer j.slate.mu.Unlock()
	if head, _ := j.slate.head(); s.Seq > head || j.slate.changes[s.Seq-1].Hash != s.Hash {
		return journal.ForeignSnapshot(s.Seq)
	}
	s.Data = bytes.Clone(s.Data)
	at, found := slices.BinarySearchFunc(j.slate.snapshots, s.Seq, func(have journal.Snapshot, seq uint64) int {
		switch {
		case have.Seq < seq:
			return -1
		case have.Seq > seq:
			return 1
		}
		return 0
	})
	if found {
		j.slate.snapshots[at] = s
		return nil
	}
	kept := slices.Insert(j.slate.snapshots, at, s)
	j.slate.snapshots = kept[max(0, len(kept)-journal.SnapshotsKept):]
	return nil
}

// Latest is the newest snapshot that was kept; see [journal.Journal].
func (j *Journal) Latest(ctx context.Context) (journal.Snapshot, bool, error) {
	if err := j.ready(ctx); err != nil {
		return journal.Snapshot{}, false, fmt.Errorf("read snapshot: %w", err)
	}
	j.slate.mu.RLock()
	defer j.slate.mu.RUnlock()
	if len(j.slate.snapshots) == 0 {
		return journal.Snapshot{}, false, nil
	}
	s := j.slate.snapshots[len(j.slate.snapshots)-1]
	s.Data = bytes.Clone(s.Data)
	return s, true, nil
}

// Close ends this handle only. It may be called twice.
func (j *Journal) Close() error {
	j.once.Do(func() { close(j.closed) })
	return nil
}

func (j *Journal) ready(ctx context.Context) error {
	select {
	case <-j.closed:
		return journal.ErrClosed
	default:
		return ctx.Err()
	}
}
