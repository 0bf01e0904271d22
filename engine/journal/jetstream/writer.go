package jetstream

import (
	"context"
	"errors"
	"time"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// writer makes messages of the appends that wait, one message at a time.
type writer struct {
	*follower
	queue    queue
	patience time.Duration   // how long a message waits for proof
	ctx      context.Context // ends with Close
}

// write appends what waits, one message at a time, until Close.
func (w *writer) write() {
	defer w.queue.close()
	last := 0
	for w.ctx.Err() == nil {
		w.queue.gather(last)
		if waiting := w.queue.take(w.remote.limit / 2); len(waiting) > 0 {
			last = len(waiting)
			w.store(newID(), waiting)
			continue
		}
		select {
		case <-w.queue.more:
		case <-w.closed:
		}
	}
}

// store appends some requests as one message. Its id stays the same over all tries and places.
func (w *writer) store(name id, waiting []*request) {
	for len(waiting) > 0 {
		g := w.compose(waiting)
		if waiting = g.in; len(g.batch.changes) == 0 {
			return
		}
		step, err := w.commit(name, &g)
		switch {
		case err != nil:
			answerAll(waiting, err)
			return
		case step == Stored:
			for i, r := range waiting {
				r.done <- answer{last: g.lasts[i]}
			}
			return
		}
		// Another batch has the place. When it is mirrored, the expectations are looked at again.
		if err := w.reach(w.ctx, func() bool { return w.mirrored.place > g.after.place }); err != nil {
			answerAll(waiting, w.orClosed(err))
			return
		}
	}
}

// commit publishes a batch and counts it when it is stored.
func (w *writer) commit(name id, g *group) (Step, error) {
	messages := messagesOf(name, &g.batch, w.remote.limit)
	step, err := w.remote.prove(w.ctx, name, messages, g.after.place, w.patience)
	if err != nil {
		return "", w.explain(err, g.after.place)
	}
	if step != Stored {
		return step, nil
	}
	end := position{g.after.place + uint64(len(messages)), g.batch.last(), g.batch.hash}
	w.mu.Lock()
	w.count(end, g.batch.changes)
	if w.mirrored.place < end.place {
		w.own = append(w.own, pending{end, g.batch.changes})
	}
	many := len(w.own) > ownKept
	w.mu.Unlock()
	if many {
		if err := w.keepOwn(w.ctx); err != nil {
			w.stuck(err) // the batch is stored all the same
		}
	}
	return step, nil
}

// explain adds what is known of an append without proof.
func (w *writer) explain(err error, place uint64) error {
	if w.ctx.Err() != nil {
		return errors.Join(journal.ErrClosed, err)
	}
	info, e := w.remote.state(w.ctx, lookWait)
	if e == nil && info.State.LastSeq < place {
		return errors.Join(short(info, place), err)
	}
	return err
}

func (w *writer) orClosed(err error) error {
	if w.ctx.Err() != nil {
		return journal.ErrClosed
	}
	return err
}

// group is what becomes one message.
type group struct {
	after position
	batch batch
	in    []*request
	lasts []uint64 // seq of the last change of each
}

// compose puts requests behind the end. One whose expectations fail is answered, or waits for the next message if they fail
// only because of another request of this one.
func (w *writer) compose(waiting []*request) group {
	if late := w.doubtful(waiting); late {
		w.refresh(w.ctx) // a conflict is said only of what the servers have
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	g := group{after: w.end, batch: batch{first: w.end.seq + 1, before: w.end.hash, hash: w.end.hash}}
	seq, made := w.end.seq, map[string]uint64{}
	version := func(entity string) uint64 {
		if v, ok := made[entity]; ok {
			return v
		}
		return w.versions[entity]
	}
	var sum journal.Summer
	var later []*request
	for _, r := range waiting {
		if w.damage != nil {
			r.done <- answer{err: w.damage}
			continue
		}
		if c := failing(r.expect, w.end.seq, func(e string) uint64 { return w.versions[e] }); c != nil &&
			failing(r.expect, seq, version) != nil {
			r.done <- answer{err: c}
			continue
		}
		if failing(r.expect, seq, version) != nil {
			later = append(later, r)
			continue
		}
		if len(r.batch) == 0 {
			r.done <- answer{last: w.end.seq}
			continue
		}
		for _, c := range r.batch {
			seq++
			c.Seq, c.Version = seq, version(c.Entity)+1
			c.Hash = sum.Sum(g.batch.hash, &c)
			made[c.Entity], g.batch.hash = c.Version, c.Hash
			g.batch.changes = append(g.batch.changes, c)
		}
		g.in, g.lasts = append(g.in, r), append(g.lasts, seq)
	}
	w.queue.putBack(later)
	return g
}

// doubtful says whether a request expects more than this host has.
func (w *writer) doubtful(waiting []*request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range waiting {
		c := failing(r.expect, w.end.seq, func(e string) uint64 { return w.versions[e] })
		if c != nil && c.Want > c.Has {
			return true
		}
	}
	return false
}

func failing(expect []journal.Expect, seq uint64, version func(string) uint64) *journal.Conflict {
	for _, e := range expect {
		has := seq
		if e.Entity != journal.Whole {
			has = version(e.Entity)
		}
		if has != e.Version {
			return &journal.Conflict{Entity: e.Entity, Want: e.Version, Has: has}
		}
	}
	return nil
}
