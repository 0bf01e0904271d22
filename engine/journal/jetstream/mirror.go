package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	js "github.com/nats-io/nats.go/jetstream"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
)

const (
	feedBytes  = 32 << 20         // of messages that are fetched ahead: four of the largest
	feedExpiry = 20 * time.Second // of one request for messages: the traffic of a host at rest
	feedBeat   = 2 * time.Second  // a consumer that is silent for two of these is made anew
	lookEvery  = 30 * time.Second // a stream that ends before the mirror does shows only if it is asked
	againAfter = 2 * time.Second  // after damage: another server may lead by then
	keepEvery  = 5 * time.Millisecond
	nearMost   = 256                    // messages that are read one by one when a journal is opened
	ownKept    = 64                     // messages of this handle that its consumer has not brought; more are mirrored at once
	ownWait    = 100 * time.Millisecond // for the consumer; then a reader mirrors what this handle has stored
	shortLooks = 3                      // a server that lags, or leads no longer, may say an old end; after so many looks it is damage
)

// stored is a message and its place.
type stored struct {
	place uint64
	data  []byte
}

// follower keeps the mirror of a handle: it brings what the stream has, and knows where both end.
type follower struct {
	remote   *remote
	mirror   *sqlite.Journal
	report   func(error)   // may be nil
	overlap  uint64        // the last message whose batch the mirror had in part or whole when it was opened
	wanted   chan struct{} // has room for one: a reader waits for the mirror
	closed   chan struct{}
	notifier journal.Notifier // rings when the mirror grew, or damage was found or has gone

	mu       sync.Mutex
	end      position          // what the next append follows: the mirror's end, or own changes that are stored and not yet mirrored
	mirrored position          // the mirror's end
	own      []pending         // what is between them
	versions map[string]uint64 // of the entities, at end
	damage   error             // the stream cannot be followed now
	asOf     time.Time         // when the mirror was last known to have all
	silent   time.Time         // until then no server is asked only to see more

	keeping sync.Mutex // held by the one that writes to the mirror, and taken before mu
}

// position is a place in the stream, and the last change up to there.
type position struct {
	place uint64 // of the message
	seq   uint64
	hash  journal.Hash
}

// feed follows the stream until Close. What it cannot follow is reported, and tried again.
func (f *follower) feed(ctx context.Context) {
	for ctx.Err() == nil {
		if err := f.follow(ctx); err != nil && ctx.Err() == nil {
			f.stuck(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(againAfter):
		}
	}
}

// stuck keeps why the mirror cannot go on, and reports it once.
func (f *follower) stuck(err error) {
	f.mu.Lock()
	known := f.damage != nil && f.damage.Error() == err.Error()
	f.damage = err
	f.mu.Unlock()
	if known {
		return
	}
	f.notifier.Notify()
	if f.report != nil {
		f.report(err)
	}
}

// follow mirrors what comes. It ends with an error if that cannot be mirrored, and without one if the servers cannot be
// reached.
func (f *follower) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := f.look(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	next := f.mirrored.place + 1
	f.mu.Unlock()
	consumer, err := f.remote.js.OrderedConsumer(ctx, f.remote.name,
		js.OrderedConsumerConfig{DeliverPolicy: js.DeliverByStartSequencePolicy, OptStartSeq: next})
	if err != nil {
		return nil //nolint:nilerr // it is tried again
	}
	came := make(chan js.Msg, journal.BatchChangesMax)
	run, err := consumer.Consume(func(m js.Msg) {
		select {
		case came <- m:
		case <-ctx.Done():
		}
	}, js.PullMaxBytes(feedBytes), js.PullExpiry(feedExpiry), js.PullHeartbeat(feedBeat))
	if err != nil {
		return nil //nolint:nilerr // likewise
	}
	defer func() { cancel(); go run.Stop() }() // it waits for servers that do not answer, or for the end of the connection
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var t taker
	for {
		select {
		case m := <-came:
			if err = f.take(ctx, &t, gather(m, came)); err == nil {
				f.pause(ctx)
			}
		case <-look.C:
			err = f.look(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
		if err != nil {
			var damage *Damage
			if info := consumer.CachedInfo(); errors.As(err, &damage) && info != nil && info.Cluster != nil {
				damage.Server = info.Cluster.Leader // it reads its own copy
			}
			return err
		}
	}
}

// near mirrors the last messages of the stream if they are few. To read them one by one takes only a server that leads the stream.
// A consumer for them may be made on a server that does not answer, and is then made anew after seconds. What is wrong with a
// message is said by follow, which reads it again.
func (f *follower) near(ctx context.Context, last uint64) {
	var t taker
	for place := f.mirrored.place + 1; place <= last && last <= f.mirrored.place+nearMost; place++ {
		raw, err := f.remote.message(ctx, place, readWait)
		if err != nil || raw == nil || f.take(ctx, &t, []stored{{place, raw}}) != nil {
			return
		}
	}
}

// pause lets messages gather, unless a reader waits: so a busy stream costs the mirror a few hundred syncs a second.
func (f *follower) pause(ctx context.Context) {
	select {
	case <-f.wanted:
	case <-time.After(keepEvery):
	case <-ctx.Done():
	}
}

// gather takes what has come already, so that the mirror stores it at once.
func gather(m js.Msg, came <-chan js.Msg) (got []stored) {
	for size := 0; ; {
		place := uint64(0)
		if meta, err := m.Metadata(); err == nil {
			place = meta.Sequence.Stream
		}
		got, size = append(got, stored{place, m.Data()}), size+len(m.Data())
		if size >= feedBytes || len(got) >= journal.BatchChangesMax {
			return got
		}
		select {
		case m = <-came:
		default:
			return got
		}
	}
}

// look asks the leader where the stream ends. If that is before the mirror's end again and again, it is damage.
func (f *follower) look(ctx context.Context) error {
	for n := 1; ; n++ {
		f.mu.Lock()
		place := f.mirrored.place
		f.mu.Unlock()
		info, err := f.remote.state(ctx, tryWait)
		if err != nil {
			return nil //nolint:nilerr // it is asked again; until then the mirror is as of the last answer
		}
		if damage := lost(info); damage != nil {
			return damage
		}
		last := info.State.LastSeq
		if last >= place {
			f.mu.Lock()
			if f.mirrored.place >= last {
				f.asOf, f.damage = time.Now(), nil
			}
			f.mu.Unlock()
			return nil
		}
		if n == shortLooks {
			return short(info, place)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(againAfter / shortLooks):
		}
	}
}

// short is the damage of a stream that ends before a message that this host has seen.
func short(info *js.StreamInfo, seen uint64) *Damage {
	last := info.State.LastSeq
	return &Damage{
		Place: last + 1, Server: leaderOf(info),
		What: fmt.Sprintf("its leader has no message after %d, and this host has seen %d", last, seen),
	}
}

func leaderOf(info *js.StreamInfo) string {
	if info.Cluster == nil {
		return ""
	}
	return info.Cluster.Leader
}

// lost is the damage that a server knows of itself.
func lost(info *js.StreamInfo) *Damage {
	server := leaderOf(info)
	switch {
	case info.State.Lost != nil && len(info.State.Lost.Msgs) > 0:
		return &Damage{
			Place: info.State.Lost.Msgs[0], Server: server,
			What: fmt.Sprintf("the server has lost %d messages", len(info.State.Lost.Msgs)),
		}
	case info.State.NumDeleted > 0:
		return &Damage{Server: server, What: fmt.Sprintf("%d messages are missing in it", info.State.NumDeleted)}
	case info.State.FirstSeq > 1:
		return &Damage{Place: 1, Server: server, What: fmt.Sprintf("the messages before %d are missing", info.State.FirstSeq)}
	}
	return nil
}

// taker puts the parts of batches together.
type taker struct {
	place uint64  // of the last message that was taken
	part  message // the last part, of a batch that is not whole yet
	body  []byte
}

// add takes the next message. The batch is nil until all its parts are there.
func (t *taker) add(raw []byte) (*batch, error) {
	m, err := parse(raw)
	if err != nil {
		return nil, err
	}
	if m.Part != t.part.Part+1 || m.Part > 1 && (m.ID != t.part.ID || m.First != t.part.First || m.Parts != t.part.Parts) {
		return nil, errParts
	}
	if m.Parts == 1 {
		return decode(m.First, m.body)
	}
	if t.body = append(t.body, m.body...); len(t.body) > bodyMax {
		return nil, errCount
	}
	if t.part = m; m.Part < m.Parts {
		return nil, nil
	}
	body := t.body
	*t = taker{}
	return decode(m.First, body)
}

// take mirrors messages. Nothing is stored of one that does not fit to what the mirror has.
func (f *follower) take(ctx context.Context, t *taker, messages []stored) error {
	f.mu.Lock()
	now := f.mirrored
	f.mu.Unlock()
	place, head, hash := now.place, now.seq, now.hash
	if t.place > place {
		place = t.place // parts of a batch that is not whole yet
	} else {
		*t = taker{}
	}
	var made []pending
	var bad error
	for _, m := range messages {
		if m.place <= now.place {
			continue // this host has stored it, and mirrored it already
		}
		if place++; m.place != place {
			bad = &Damage{Place: place, Seq: head + 1, What: fmt.Sprintf("it is missing (the next one stored is %d)", m.place)}
			break
		}
		b, err := t.add(m.data)
		if err != nil {
			bad = wrong(place, head+1, err)
			break
		}
		if t.place = place; b == nil {
			continue
		}
		rest, err := follows(b, head, hash, place <= f.overlap)
		if err != nil {
			bad = wrong(place, 0, err)
			break
		}
		made = append(made, pending{position{place, max(head, b.last()), b.hash}, rest})
		if b.last() >= head {
			head, hash = b.last(), b.hash
		}
	}
	if err := f.keep(ctx, made); err != nil {
		return err
	}
	return bad
}

// pending is a batch that follows the mirror's end, without the changes that the mirror has.
type pending struct {
	position
	changes []journal.Change
}

// follows checks that a batch continues the history, and gives those of its changes that are new. Only where the mirror
// was opened some may be old.
func follows(b *batch, head uint64, hash journal.Hash, overlaps bool) ([]journal.Change, error) {
	switch {
	case b.first <= head && !overlaps:
		return nil, &journal.Broken{Seq: b.first, Why: "it is stored twice"}
	case b.first > head+1:
		return nil, &journal.Broken{Seq: head + 1, Why: fmt.Sprintf("it is missing (the next one stored is %d)", b.first)}
	case b.first == head+1 && b.before != hash, b.last() == head && b.hash != hash:
		return nil, &journal.Broken{Seq: b.first, Why: "it belongs to another history than that of this host"}
	case b.last() <= head:
		return nil, nil
	}
	return b.changes[head+1-b.first:], nil
}

// keepOwn mirrors what this handle has stored and its consumer has not brought: the servers may be gone since.
func (f *follower) keepOwn(ctx context.Context) error {
	f.mu.Lock()
	own := slices.Clone(f.own)
	f.mu.Unlock()
	return f.keep(ctx, own)
}

// keep stores batches in the mirror, many at once. If the mirror refuses that, it gets them one by one, to find the
// bad one.
func (f *follower) keep(ctx context.Context, made []pending) error {
	f.keeping.Lock()
	defer f.keeping.Unlock()
	f.mu.Lock()
	made = slices.DeleteFunc(made, func(p pending) bool { return p.place <= f.mirrored.place })
	f.mu.Unlock()
	for len(made) > 0 {
		n, changes := 1, made[0].changes
		for n < len(made) && len(changes)+len(made[n].changes) <= journal.BatchChangesMax {
			changes = append(changes[:len(changes):len(changes)], made[n].changes...)
			n++
		}
		err := f.keepOne(ctx, pending{made[n-1].position, changes})
		var broken *journal.Broken
		if n > 1 && errors.As(err, &broken) {
			for _, p := range made[:n] {
				if err := f.keepOne(ctx, p); err != nil {
					return err
				}
			}
			err = nil
		}
		if err != nil {
			return err
		}
		made = made[n:]
	}
	return nil
}

func (f *follower) keepOne(ctx context.Context, p pending) error {
	f.mu.Lock()
	after, end := f.mirrored.seq, f.end
	f.mu.Unlock()
	if p.place == end.place && p.hash != end.hash {
		return &Damage{Place: p.place, Seq: p.seq, What: "it is not what this host stored there"}
	}
	if len(p.changes) > 0 {
		err := f.mirror.Mirror(ctx, p.changes, after, p.hash)
		var broken *journal.Broken
		if errors.As(err, &broken) {
			return wrong(p.place, broken.Seq, err)
		}
		if err != nil {
			return fmt.Errorf("mirror the journal: %w", err)
		}
	}
	f.mu.Lock()
	if p.changes == nil {
		p.seq, p.hash = f.mirrored.seq, f.mirrored.hash
	}
	f.mirrored = p.position
	for len(f.own) > 0 && f.own[0].place <= p.place {
		f.own = f.own[1:]
	}
	f.count(p.position, p.changes)
	f.damage, f.asOf, f.silent = nil, time.Now(), time.Time{}
	f.mu.Unlock()
	f.notifier.Notify()
	return nil
}

// reach waits until the condition holds, which is looked at under the lock.
func (f *follower) reach(ctx context.Context, holds func() bool) error {
	for {
		next := f.notifier.Next()
		f.mu.Lock()
		is, damage := holds(), f.damage
		f.mu.Unlock()
		switch {
		case is:
			return nil
		case damage != nil:
			return damage
		}
		select {
		case f.wanted <- struct{}{}:
		default:
		}
		select {
		case <-next:
		case <-f.closed:
			return journal.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// refresh asks the servers for the end of the stream and waits for the mirror. If they don't answer, the
// mirror is read as it is, and they are not asked again for a while.
func (f *follower) refresh(ctx context.Context) {
	f.mu.Lock()
	skip := time.Now().Before(f.silent) || f.damage != nil
	f.mu.Unlock()
	if skip || !f.remote.nc.IsConnected() {
		return
	}
	info, err := f.remote.state(ctx, lookWait)
	if err != nil {
		f.mu.Lock()
		f.silent = time.Now().Add(caughtUp)
		f.mu.Unlock()
		return
	}
	ctx, cancel := context.WithTimeout(ctx, caughtUp)
	defer cancel()
	if f.reach(ctx, func() bool { return max(f.mirrored.place, f.end.place) >= info.State.LastSeq }) == nil { // ready mirrors own changes
		f.mu.Lock()
		if f.mirrored.place >= info.State.LastSeq {
			f.asOf = time.Now()
		}
		f.mu.Unlock()
	}
}

// ready makes the mirror as new as can be, up to a change or all. What this handle has stored itself is always there.
func (f *follower) ready(ctx context.Context, until uint64) error {
	select {
	case <-f.closed:
		return journal.ErrClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	has := until != 0 && until <= f.mirrored.seq
	f.mu.Unlock()
	if has {
		return nil
	}
	f.refresh(ctx)
	f.mu.Lock()
	own := f.end.seq
	f.mu.Unlock()
	soon, cancel := context.WithTimeout(ctx, ownWait)
	defer cancel()
	if err := f.reach(soon, func() bool { return f.mirrored.seq >= own }); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return err
	}
	return f.keepOwn(ctx)
}

// count moves the end. The lock is held.
func (f *follower) count(to position, changes []journal.Change) {
	if to.place <= f.end.place {
		return
	}
	f.end = to
	for i := range changes {
		f.versions[changes[i].Entity] = changes[i].Version
	}
}
