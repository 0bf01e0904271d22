package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

const (
	stateEvery   = 100 * time.Millisecond // between two looks at what servers do by themselves
	settle       = time.Second            // a server that was just started counts as complete before it begins to fetch what it lacks
	activeWithin = 3 * time.Second        // since a server answered the one that leads, which asks each second
	stepDownWait = 5 * time.Second        // for the new leader; who asks at each look keeps them from electing one
)

// Fill appends to a stream what a journal has and the stream has not: for a team that was on one host, and for a stream that
// is made anew from the longest mirror that verifies. The hashes stay. If it is interrupted, call it again. No other
// program may append meanwhile.
func Fill(ctx context.Context, nc *nats.Conn, stream string, from journal.Journal) error {
	r, err := reach(ctx, nc, stream)
	if err == nil {
		err = r.fill(ctx, from)
	}
	if err != nil {
		return fmt.Errorf("fill stream %s: %w", stream, err)
	}
	return nil
}

func (r *remote) fill(ctx context.Context, from journal.Journal) error {
	end, err := r.endOf(ctx)
	if err != nil {
		return err
	}
	b, size := batch{first: end.seq + 1, before: end.hash}, 0
	flush := func() error {
		if len(b.changes) == 0 {
			return nil
		}
		b.hash = b.changes[len(b.changes)-1].Hash
		name := newID()
		messages := messagesOf(name, &b, r.limit)
		step, err := r.prove(ctx, name, messages, end.place, patience)
		if err == nil && step != Stored {
			err = errors.New("another program appends to it")
		}
		end = position{end.place + uint64(len(messages)), b.last(), b.hash}
		b, size = batch{first: end.seq + 1, before: end.hash}, 0
		return err
	}
	chain := journal.Chain{}
	if end.seq > 1 { // the change before the end is not needed, its own hash is
		chain.Seq = end.seq - 1
	}
	for c, err := range from.Read(ctx, journal.Query{After: max(end.seq, 1) - 1}) {
		switch {
		case err != nil:
			return err
		case c.Seq == end.seq && c.Hash != end.hash:
			return &Damage{
				Place: end.place, Seq: c.Seq,
				What: "it belongs to another history than the journal that it is to be filled from",
			}
		case c.Seq == end.seq:
			chain.Seq, chain.Hash = c.Seq, c.Hash
			continue
		}
		if err := chain.Take(&c); err != nil {
			return err
		}
		if b.changes, size = append(b.changes, c), size+len(c.Data); len(b.changes) == journal.BatchChangesMax || size > r.limit/2 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if chain.Seq < end.seq || chain.Hash.IsZero() && end.seq > 0 {
		return fmt.Errorf("it has change %d already, and the journal that it is to be filled from does not go so far", end.seq)
	}
	return flush()
}

// endOf is the end of the last batch of the stream.
func (r *remote) endOf(ctx context.Context) (p position, err error) {
	last := r.stream.CachedInfo().State.LastSeq
	if last == 0 {
		return p, nil
	}
	_, _, b, err := r.batchAt(ctx, last)
	if err != nil {
		return p, err
	}
	return position{last, b.last(), b.hash}, nil
}

// Lead makes a server lead a stream, which need not be that of a journal. The error may be ErrNoCopy.
func Lead(ctx context.Context, nc *nats.Conn, stream, server string) error {
	return lead(ctx, nc, stream, server, "")
}

// LeadElsewhere makes any server lead the stream but one; if that is empty, but the one that leads it now.
func LeadElsewhere(ctx context.Context, nc *nats.Conn, stream, but string) error {
	return lead(ctx, nc, stream, "", but)
}

// at is a stream that need not be that of a journal.
func at(nc *nats.Conn, stream string) (*remote, error) {
	api, err := js.New(nc)
	return &remote{nc: nc, js: api, name: stream}, err
}

func lead(ctx context.Context, nc *nats.Conn, stream, server, but string) error {
	r, err := at(nc, stream)
	if err == nil {
		err = r.lead(ctx, server, but)
	}
	if err != nil {
		return fmt.Errorf("move the lead of stream %s: %w", stream, err)
	}
	return nil
}

// lead makes a server lead, or with an empty name any but one.
func (r *remote) lead(ctx context.Context, server, but string) error {
	asked, again := errors.New("it has no leader"), time.Now().Add(settle)
	return r.until(ctx, func(c *js.ClusterInfo) error {
		if c.Leader != "" && c.Leader != but && (server == "" && but != "" || c.Leader == server) {
			return nil
		}
		if server == "" && but == "" {
			but = c.Leader
		}
		if server != "" && c.Leader != "" && !slices.ContainsFunc(c.Replicas, func(p *js.PeerInfo) bool { return p.Name == server }) {
			return ErrNoCopy
		}
		to := ""
		for _, p := range c.Replicas {
			if Complete(p) && p.Name != but && (server == "" || p.Name == server) {
				to = p.Name
			}
		}
		if to == "" {
			again = time.Now().Add(settle)
		}
		if to != "" && c.Leader != "" && time.Now().After(again) {
			asked, again = r.stepDown(ctx, to), time.Now().Add(stepDownWait)
		}
		return asked
	})
}

func (r *remote) stepDown(ctx context.Context, to string) error {
	ctx, cancel := context.WithTimeout(ctx, tryWait)
	defer cancel()
	ask, err := json.Marshal(map[string]any{"placement": map[string]string{"preferred": to}})
	if err != nil {
		return err
	}
	reply, err := r.nc.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+r.name, ask)
	if err != nil {
		return err
	}
	var said struct {
		Error *js.APIError `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &said); err != nil {
		return err
	}
	if said.Error != nil {
		return said.Error
	}
	return errors.New("the new leader is not known yet")
}

// until looks at the copies until they are as they must be.
func (r *remote) until(ctx context.Context, good func(*js.ClusterInfo) error) error {
	for {
		info, err := r.state(ctx, tryWait)
		switch {
		case err == nil && info.Cluster == nil:
			return errors.New("it has only one copy")
		case err == nil && len(info.Cluster.Replicas) == 0 && info.Config.Replicas > 1: // it names itself as the leader
			err = errors.New("a server answers that could not join the group of the stream")
		case err == nil:
			err = good(info.Cluster)
		}
		if err == nil || errors.Is(err, ErrNoCopy) {
			return err
		}
		select {
		case <-time.After(stateEvery):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// Node is a server that can be stopped, by the program that runs it.
type Node interface {
	Name() string                // of the server
	Store() string               // its StoreDir
	Stop(context.Context) error  // and wait until it has ended
	Start(context.Context) error // and wait until it takes connections
}

// Repair has one server fetch its copy of the stream anew from the others. It first moves the lead away, stops the
// server, and makes sure that the other copies are complete and that the one that leads now is equal to the mirror. Only
// then are the files put aside, in the folder that is returned. At the end the server leads and its new copy is compared with the mirror.
// nc must not depend on that server alone. With a nil mirror, of a stream that is no journal, nothing is compared.
func Repair(ctx context.Context, nc *nats.Conn, stream string, mirror journal.Journal, node Node) (aside string, err error) {
	r, err := at(nc, stream)
	if err == nil && mirror != nil {
		r, err = reach(ctx, nc, stream)
	}
	if err == nil {
		aside, err = r.repair(ctx, mirror, node)
	}
	if err != nil {
		return aside, fmt.Errorf("repair the copy of stream %s on server %s: %w", stream, node.Name(), err)
	}
	return aside, nil
}

func (r *remote) repair(ctx context.Context, mirror journal.Journal, node Node) (aside string, err error) {
	if err := r.lead(ctx, "", node.Name()); err != nil {
		return "", err
	}
	group, err := Group(ctx, r.nc, r.name, node.Name())
	if err != nil && !errors.Is(err, ErrNoCopy) {
		return "", err
	}
	start := func() error { return node.Start(context.WithoutCancel(ctx)) } // the team needs the server when ctx has ended, too
	stopped := true
	defer func() {
		if stopped {
			err = errors.Join(err, start())
		}
	}()
	if err := node.Stop(ctx); err != nil {
		return "", err
	}
	// What is acknowledged from now on is on all the others. What was acknowledged before is there too when they are
	// complete. So no change is only in the files that are put aside.
	if err := r.until(ctx, others(node.Name())); err != nil {
		return "", fmt.Errorf("the other copies are not complete, so nothing was removed: %w", err)
	}
	if err := r.whole(ctx, mirror); err != nil {
		return "", fmt.Errorf("nothing was removed: %w", err)
	}
	if aside, err = putAside(node.Store(), []string{r.name}, []string{group}); err != nil {
		return aside, err
	}
	stopped = false
	if err := start(); err != nil {
		return aside, err
	}
	if err := r.until(ctx, others("")); err != nil {
		return aside, err
	}
	if err := r.lead(ctx, node.Name(), ""); err != nil {
		return aside, err
	}
	return aside, r.whole(ctx, mirror)
}

// Group waits for the name of the group of servers of a stream, which a server belongs to. The error may be ErrNoCopy.
func Group(ctx context.Context, nc *nats.Conn, stream, server string) (group string, err error) {
	r, err := at(nc, stream)
	if err != nil {
		return "", err
	}
	return group, r.until(ctx, func(c *js.ClusterInfo) error {
		if c.Leader != server && !slices.ContainsFunc(c.Replicas, func(p *js.PeerInfo) bool { return p.Name == server }) {
			return ErrNoCopy
		}
		group = c.RaftGroup
		return nil
	})
}

// ErrNoCopy says that a server keeps no copy of the stream: three others do.
var ErrNoCopy = errors.New("this server keeps no copy")

// Current waits until a server says that it has all messages of the stream. The error may be ErrNoCopy.
func Current(ctx context.Context, nc *nats.Conn, stream, server string) error {
	r, err := reach(ctx, nc, stream)
	if err != nil {
		return err
	}
	return r.until(ctx, func(c *js.ClusterInfo) error {
		if c.Leader == "" || c.Leader == server {
			return others("")(&js.ClusterInfo{Leader: c.Leader})
		}
		at := slices.IndexFunc(c.Replicas, func(p *js.PeerInfo) bool { return p.Name == server })
		if at < 0 {
			return ErrNoCopy
		}
		return others("")(&js.ClusterInfo{Leader: c.Leader, Replicas: c.Replicas[at : at+1]})
	})
}

// Complete reports whether a server has all messages of a stream, as the one that leads the stream sees it. By itself it would count one
// that runs without its store as complete for ten seconds.
func Complete(p *js.PeerInfo) bool {
	return p.Current && !p.Offline && p.Lag == 0 && p.Active < activeWithin
}

// others says which copies are not complete, but for that of one server.
func others(but string) func(*js.ClusterInfo) error {
	return func(c *js.ClusterInfo) error {
		if c.Leader == "" || c.Leader == but {
			return errors.New("it has no leader")
		}
		for _, p := range c.Replicas {
			if p.Name != but && !Complete(p) {
				return fmt.Errorf("server %s lacks %d messages or cannot be reached", p.Name, p.Lag)
			}
		}
		return nil
	}
}

// whole is nil if the leader's copy is equal to the mirror.
func (r *remote) whole(ctx context.Context, mirror journal.Journal) error {
	if mirror == nil {
		return nil
	}
	for _, f := range Scrub(ctx, r.nc, r.name, mirror) {
		if !f.OK {
			return errors.New(f.What + "; " + f.Do)
		}
	}
	return nil
}

const folder = "jetstream" // the folder in StoreDir
