package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sort"
	"time"
)

// ErrPast says that a journal ends in the past, so nothing is appended to it.
var ErrPast = errors.New("this is the journal as it was, and nothing can be added to it")

// NoChange says that a journal has no such change.
type NoChange struct{ Seq, Head uint64 }

func (n *NoChange) Error() string {
	return fmt.Sprintf("the journal has no change %d; they are numbered from 1, and its last one is %d", n.Seq, n.Head)
}

// Until returns a journal as it was when it ended at a change: what is read of it ends there, and
// nothing is appended. Closing it does nothing. The error is a *NoChange if there is no such change.
func Until(ctx context.Context, j Journal, seq uint64) (Journal, Change, error) {
	last, err := one(ctx, j, seq)
	return &until{Journal: j, last: last}, last, err
}

// LastAt returns the last change at a time or before it; 0: all changes are later. Times never go back
// in a journal.
func LastAt(ctx context.Context, j Journal, at time.Time) (seq uint64, err error) {
	head, _, err := j.Head(ctx)
	if err != nil {
		return 0, err
	}
	found := sort.Search(int(head), func(n int) bool { //nolint:gosec // a journal has fewer changes than an int
		if err != nil {
			return true
		}
		var ch Change
		ch, err = one(ctx, j, uint64(n)+1) //nolint:gosec // n is not negative
		return ch.Time.After(at)
	})
	return uint64(found), err //nolint:gosec // found is not negative
}

// one reads one change.
func one(ctx context.Context, j Journal, seq uint64) (Change, error) {
	head, _, err := j.Head(ctx)
	if err != nil || seq == 0 || seq > head {
		return Change{}, cmp.Or[error](err, &NoChange{seq, head})
	}
	for ch, err := range j.Read(ctx, Query{After: seq - 1, Until: seq}) {
		return ch, err
	}
	return Change{}, &NoChange{seq, head}
}

type until struct {
	Journal
	last Change
}

func (u *until) Append(context.Context, []Change, ...Expect) (uint64, error) { return 0, ErrPast }

func (u *until) Read(ctx context.Context, q Query) iter.Seq2[Change, error] {
	q.Until = min(cmp.Or(q.Until, u.last.Seq), u.last.Seq)
	return u.Journal.Read(ctx, q)
}

func (u *until) Watch(ctx context.Context, q Query) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for ch, err := range u.Read(ctx, q) {
			if !yield(ch, err) || err != nil {
				return
			}
		}
		<-ctx.Done() // no change follows
	}
}

func (u *until) Head(context.Context) (uint64, Hash, error) { return u.last.Seq, u.last.Hash, nil }

func (u *until) SaveSnapshot(context.Context, Snapshot) error { return ErrPast }

// Latest returns no newer snapshot than the last change; an older one is not looked for.
func (u *until) Latest(ctx context.Context) (Snapshot, bool, error) {
	s, ok, err := u.Journal.Latest(ctx)
	if err != nil || !ok || s.Seq > u.last.Seq {
		return Snapshot{}, false, err
	}
	return s, true, nil
}

func (u *until) Close() error { return nil }
