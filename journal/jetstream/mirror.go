package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	js "github.com/nats-io/nats.go/jetstream"

	"github.com/fairlead-dev/fairlead/journal"
)

const (
	feedBytes  = 32 << 20         // of messages that are fetched ahead: four of the largest
	feedExpiry = 20 * time.Second // of one request for messages: the traffic of a host at rest
	feedBeat   = 2 * time.Second  // a consumer that is silent for two of these is made anew
	lookEvery  = 30 * time.Second // a stream that ends before the mirror does shows only if it is asked
	againAfter = 2 * time.Second  // after damage: another server may lead by then
	keepEvery  = 5 * time.Millisecond
	ownKept    = 64                     // messages of this handle that its consumer has not brought; more are mirrored at once
	ownWait    = 100 * time.Millisecond // for the consumer; then a reader mirrors what this handle has stored
	shortLooks = 3                      // a server that lags, or leads no longer, may say an old end; after so many looks it is damage
)

// stored is a message and its place.
type stored struct {
	place uint64
	data  []byte
}

// feed follows the stream until Close. What it cannot follow is reported, and tried again.
func (j *Journal) feed(ctx context.Context) {
	for ctx.Err() == nil {
		if err := j.follow(ctx); err != nil && ctx.Err() == nil {
			j.stuck(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(againAfter):
		}
	}
}

// stuck keeps why the mirror cannot go on, and reports it once.
func (j *Journal) stuck(err error) {
	j.mu.Lock()
	known := j.damage != nil && j.damage.Error() == err.Error()
	j.damage = err
	j.mu.Unlock()
	if known {
		return
	}
	j.bell.Ring()
	if j.opts.Report != nil {
		j.opts.Report(err)
	}
}

// follow mirrors what comes. It ends with an error if that cannot be mirrored, and without one if the servers cannot be
// reached.
func (j *Journal) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := j.look(ctx); err != nil {
		return err
	}
	j.mu.Lock()
	next := j.mirrored.place + 1
	j.mu.Unlock()
	consumer, err := j.remote.js.OrderedConsumer(ctx, j.remote.name, js.OrderedConsumerConfig{DeliverPolicy: js.DeliverByStartSequencePolicy, OptStartSeq: next})
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
	defer func() { cancel(); run.Stop() }()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var t taker
	for {
		select {
		case m := <-came:
			if err = j.take(ctx, &t, gather(m, came)); err == nil {
				j.pause(ctx)
			}
		case <-look.C:
			err = j.look(ctx)
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

// pause lets messages gather, unless a reader waits: so a busy stream costs the mirror a few hundred syncs a second.
func (j *Journal) pause(ctx context.Context) {
	select {
	case <-j.wanted:
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
func (j *Journal) look(ctx context.Context) error {
	for n := 1; ; n++ {
		j.mu.Lock()
		place := j.mirrored.place
		j.mu.Unlock()
		info, err := j.remote.state(ctx, tryWait)
		if err != nil {
			return nil //nolint:nilerr // it is asked again; until then the mirror is as of the last answer
		}
		if damage := lost(info); damage != nil {
			return damage
		}
		last := info.State.LastSeq
		if last >= place {
			j.mu.Lock()
			if j.mirrored.place >= last {
				j.asOf, j.damage = time.Now(), nil
			}
			j.mu.Unlock()
			return nil
		}
		if n == shortLooks {
			return j.short(last, place)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(againAfter / shortLooks):
		}
	}
}

func (j *Journal) short(last, place uint64) *Damage {
	return &Damage{Place: last + 1, What: fmt.Sprintf("its leader has no message after %d, and this host has seen %d", last, place)}
}

// lost is the damage that a server knows of itself.
func lost(info *js.StreamInfo) *Damage {
	var server string
	if info.Cluster != nil {
		server = info.Cluster.Leader
	}
	switch {
	case info.State.Lost != nil && len(info.State.Lost.Msgs) > 0:
		return &Damage{Place: info.State.Lost.Msgs[0], Server: server, What: fmt.Sprintf("the server has lost %d messages", len(info.State.Lost.Msgs))}
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
	if m.part != t.part.part+1 || m.part > 1 && (m.id != t.part.id || m.first != t.part.first || m.parts != t.part.parts) {
		return nil, errParts
	}
	if m.parts == 1 {
		return decode(m.first, m.body)
	}
	if t.body = append(t.body, m.body...); len(t.body) > bodyMax {
		return nil, errCount
	}
	if t.part = m; m.part < m.parts {
		return nil, nil
	}
	body := t.body
	*t = taker{}
	return decode(m.first, body)
}

// take mirrors messages. Nothing is stored of one that does not fit to what the mirror has.
func (j *Journal) take(ctx context.Context, t *taker, messages []stored) error {
	j.mu.Lock()
	now := j.mirrored
	j.mu.Unlock()
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
		rest, err := follows(b, head, hash, place <= j.overlap)
		if err != nil {
			bad = wrong(place, 0, err)
			break
		}
		made = append(made, pending{position{place, max(head, b.last()), b.hash}, rest})
		if b.last() >= head {
			head, hash = b.last(), b.hash
		}
	}
	if err := j.keep(ctx, made); err != nil {
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
func (j *Journal) keepOwn(ctx context.Context) error {
	j.mu.Lock()
	own := slices.Clone(j.own)
	j.mu.Unlock()
	return j.keep(ctx, own)
}

// keep stores batches in the mirror, many at once. If the mirror refuses that, it gets them one by one, to find the
// bad one.
func (j *Journal) keep(ctx context.Context, made []pending) error {
	j.keeping.Lock()
	defer j.keeping.Unlock()
	j.mu.Lock()
	made = slices.DeleteFunc(made, func(p pending) bool { return p.place <= j.mirrored.place })
	j.mu.Unlock()
	for len(made) > 0 {
		n, changes := 1, made[0].changes
		for n < len(made) && len(changes)+len(made[n].changes) <= journal.BatchChangesMax {
			changes = append(changes[:len(changes):len(changes)], made[n].changes...)
			n++
		}
		err := j.keepOne(ctx, pending{made[n-1].position, changes})
		var broken *journal.Broken
		if n > 1 && errors.As(err, &broken) {
			for _, p := range made[:n] {
				if err := j.keepOne(ctx, p); err != nil {
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

func (j *Journal) keepOne(ctx context.Context, p pending) error {
	j.mu.Lock()
	after, end := j.mirrored.seq, j.end
	j.mu.Unlock()
	if p.place == end.place && p.hash != end.hash {
		return &Damage{Place: p.place, Seq: p.seq, What: "it is not what this host stored there"}
	}
	if len(p.changes) > 0 {
		err := j.mirror.Mirror(ctx, p.changes, after, p.hash)
		var broken *journal.Broken
		if errors.As(err, &broken) {
			return wrong(p.place, broken.Seq, err)
		}
		if err != nil {
			return fmt.Errorf("mirror the journal: %w", err)
		}
	}
	j.mu.Lock()
	if p.changes == nil {
		p.seq, p.hash = j.mirrored.seq, j.mirrored.hash
	}
	j.mirrored = p.position
	for len(j.own) > 0 && j.own[0].place <= p.place {
		j.own = j.own[1:]
	}
	j.count(p.position, p.changes)
	j.damage, j.asOf, j.silent = nil, time.Now(), time.Time{}
	j.mu.Unlock()
	j.bell.Ring()
	return nil
}
