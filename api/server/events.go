package server

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/loop"
)

const (
	chunkChanges = 512     // read from the journal at a time and then written, so that a slow client blocks no journal reader
	chunkBytes   = 1 << 20 // the same limit in bytes, for big changes
	pageBytesMax = 8 << 20 // of one page of the journal, which is held in memory
	pageReadMax  = 50_000  // changes that are read for one page if few of them fit, so that an answer comes soon
	tailWindow   = 1024    // the first window, in changes, of the search for the last changes of an entity
)

type eventsIn struct {
	LastEventID int64  `header:"Last-Event-ID" default:"-1" minimum:"-1" doc:"The last sequence that the client has; browsers send it automatically. It takes precedence over after and tail"`
	After       int64  `query:"after" default:"-1" minimum:"-1" doc:"All changes after this sequence; 0: from the beginning. Without any starting point: only new changes"`
	Tail        int    `query:"tail" minimum:"0" maximum:"10000" doc:"Begin with this many earlier changes"`
	Entity      string `query:"entity" maxLength:"128" pattern:"^[a-z][a-z0-9_-]*/[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)?$" example:"control/coder" doc:"Only this entity"`
	Poll        bool   `query:"poll" doc:"End the answer after the first changes, or after 10 s without one: for a client behind a proxy that holds back what it could stream"`
}

// handleEvents serves the journal as a stream.
func handleEvents(s *Server, w http.ResponseWriter, r *http.Request, in *eventsIn) {
	if err := s.enter(); err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	defer s.leave()
	ctx := r.Context()
	place, head, err := s.place(ctx, in)
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	f, err := s.live(head)
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	s.watchers.Add(1)
	defer s.watchers.Add(-1)
	retry := time.Duration(reconnectMin+rand.IntN(reconnectVar)) * time.Millisecond
	out, err := s.openSSE(w, r, retry)
	if err != nil || r.Method == http.MethodHead {
		return
	}
	watch := &watcher{s: s, out: out, feed: f, place: place, entity: in.Entity, poll: in.Poll, wake: make(chan struct{}, 1)}
	// The id without data lets a client that is cut off before the first change resume here.
	if err := out.send([]byte("id: " + strconv.FormatUint(place, 10) + "\n\n")); err != nil {
		return
	}
	if err := watch.run(ctx); err != nil {
		out.bye(err)
	}
	out.over(in.Poll)
}

// place returns the sequence after which a stream begins, and the journal's last sequence.
func (s *Server) place(ctx context.Context, in *eventsIn) (place, head uint64, err error) {
	head, _, err = s.engine.Journal().Head(ctx)
	if err != nil {
		return 0, 0, err
	}
	switch {
	case in.LastEventID >= 0:
		place = uint64(in.LastEventID)
	case in.After >= 0 && in.Tail > 0:
		return 0, 0, twoStarts(in.Tail)
	case in.After >= 0:
		place = uint64(in.After)
	case in.Tail > 0:
		last, err := s.last(ctx, in.Tail, journal.Query{Until: head, Entity: in.Entity}, "")
		if err != nil {
			return 0, 0, err
		}
		if place = head; len(last) > 0 {
			place = last[0].Seq - 1
		}
	default:
		place = head
	}
	if place > head {
		return 0, 0, api.NewProblem(http.StatusGone, "the journal ends at %d, before the requested %d: it is not the journal that you read earlier; start again with after=0", head, place)
	}
	return place, head, nil
}

// twoStarts refuses a request that names two places to begin.
func twoStarts(tail int) error {
	return &api.Problem{
		Title: http.StatusText(http.StatusUnprocessableEntity), Status: http.StatusUnprocessableEntity,
		Detail: "after and tail are two starting points; give only one",
		Errors: []api.Fault{{Message: "cannot be combined with after", Location: "query.tail", Value: tail}},
	}
}

// last reads the last n changes that a query has and that are about an agent, in order; about all agents if it is empty.
// It searches backwards in growing windows, so that it reads no more than necessary.
func (s *Server) last(ctx context.Context, n int, q journal.Query, agent string) ([]journal.Change, error) {
	var found []journal.Change
	window := uint64(n)
	if q.Entity != "" || agent != "" {
		window = max(window, tailWindow)
	}
	for until := q.Until; until > q.After && len(found) < n; window *= 2 {
		after := max(q.After, until-min(until, window))
		var part []journal.Change
		for c, err := range s.engine.Journal().Read(ctx, journal.Query{After: after, Until: until, Entity: q.Entity}) {
			if err != nil {
				return nil, err
			}
			if api.ChangeOf(c).About(agent) {
				part = append(part, c)
			}
		}
		found = slices.Concat(part, found)
		until = after
	}
	return found[max(0, len(found)-n):], nil
}

// watcher is a client that follows the journal.
type watcher struct {
	s      *Server
	out    *sse
	feed   *feed
	place  uint64 // the last sequence that was sent
	entity string // empty: all
	poll   bool   // the first changes end the answer
	told   bool   // a change was sent

	spot int           // in feed.parked, from 1; 0: not parked
	wake chan struct{} // capacity 1; the watcher is no longer parked
	rest []byte        // of a chunk that the feed began to write for it
}

// run sends changes until the client is gone (it then returns nil), or returns why it ends the
// stream.
func (t *watcher) run(ctx context.Context) error {
	for !t.feed.holds(t.place) {
		if err := t.history(ctx); err != nil {
			return stillThere(ctx, err)
		}
	}
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	late := t.pollEnd()
	for !t.poll || !t.told {
		frames, bell, err := t.feed.since(t.place)
		if err != nil {
			return err
		}
		if t.tell(frames) != nil {
			return nil // the client is gone
		}
		if len(frames) > 0 && ctx.Err() == nil {
			continue // there may be more already; a busy sender must still notice that the server stops
		}
		if over, err := t.wait(ctx, bell, ping.C, late); over || err != nil {
			return err
		}
	}
	return nil
}

// wait waits for news, parked if possible. over: the stream ends, because the client is gone or has waited long enough.
func (t *watcher) wait(ctx context.Context, bell <-chan struct{}, ping, late <-chan time.Time) (over bool, err error) {
	if t.feed.park(t) {
		bell = t.wake
	}
	pinged := false
	select {
	case <-bell:
	case <-ping:
		pinged = true
	case <-late:
		over = true
	case <-t.s.ctx.Done():
		err = loop.ErrClosed
	case <-ctx.Done():
		over = true
	}
	if gone := t.out.complete(t.feed.unpark(t)) != nil || pinged && t.out.send(pingMessage) != nil; gone {
		return true, nil
	}
	return over, err
}

// pollEnd is when an answer to a poll ends without news; nil: never, because it is a stream.
func (t *watcher) pollEnd() <-chan time.Time {
	if !t.poll {
		return nil
	}
	return time.After(t.s.waits.poll)
}

// tell writes the frames that match the entity and flushes them at once.
func (t *watcher) tell(frames []frame) error {
	wrote := false
	for _, f := range frames {
		t.place = f.seq
		if t.entity != "" && f.entity != t.entity {
			continue
		}
		if err := t.out.write(f.wire); err != nil {
			return err
		}
		wrote, t.told = true, true
	}
	if !wrote {
		return nil
	}
	return t.out.flush()
}

// history sends a chunk of the journal. It first reads and then writes, so that a slow client blocks
// no journal reader.
func (t *watcher) history(ctx context.Context) error {
	j := t.s.engine.Journal()
	head, _, err := j.Head(ctx)
	if err != nil {
		return err
	}
	var frames []frame
	bytes := 0
	for c, err := range j.Read(ctx, journal.Query{After: t.place, Until: head, Entity: t.entity}) {
		if err != nil {
			return err
		}
		f := frameOf(c)
		frames = append(frames, f)
		if bytes += len(f.wire); len(frames) == chunkChanges || bytes >= chunkBytes {
			break
		}
	}
	if err := t.tell(frames); err != nil {
		return err
	}
	if len(frames) < chunkChanges && bytes < chunkBytes {
		t.place = head // the changes up to head do not match the entity
	}
	if t.s.ctx.Err() != nil {
		return loop.ErrClosed
	}
	return nil
}

// errCut says that the client is gone, so nothing can be sent any more.
var errCut = errors.New("the line is cut")

// stillThere drops errors that occur after the client is gone.
func stillThere(ctx context.Context, err error) error {
	if ctx.Err() == nil && !errors.Is(err, errCut) {
		return err
	}
	return nil
}

type journalIn struct {
	After  int64     `query:"after" default:"-1" minimum:"-1" doc:"All changes after this sequence; without it from the beginning"`
	Limit  int       `query:"limit" default:"1000" minimum:"1" maximum:"1000" doc:"The maximum number of changes; a page has fewer if they are big, or if few of many fit"`
	Entity string    `query:"entity" maxLength:"128" pattern:"^[a-z][a-z0-9_-]*/[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)?$" example:"control/coder" doc:"Only this entity"`
	Agent  string    `query:"agent" maxLength:"64" doc:"Only what this agent did: its orders, sessions, questions and turns"`
	Since  time.Time `query:"since" doc:"Only changes from this time on"`
	Until  time.Time `query:"until" doc:"Only changes up to this time"`
	Tail   int       `query:"tail" minimum:"0" maximum:"1000" doc:"The last changes instead, this many"`
}

// handleJournal serves one page of the journal.
func handleJournal(ctx context.Context, s *Server, in *journalIn) (*api.Page, error) {
	head, _, err := s.engine.Journal().Head(ctx)
	if err != nil {
		return nil, err
	}
	page := &api.Page{Changes: []api.Change{}, Head: head}
	if in.Tail > 0 && in.After >= 0 {
		return nil, twoStarts(in.Tail)
	}
	q, err := s.between(ctx, in, head)
	if err != nil || q.Until == 0 { // a query without an end has no limit
		return page, err
	}
	if in.Tail > 0 {
		last, err := s.last(ctx, min(in.Tail, in.Limit), q, in.Agent)
		if err != nil {
			return nil, err
		}
		page.Changes = newest(last)
		return page, nil
	}
	bytes, read := 0, 0
	for c, err := range s.engine.Journal().Read(ctx, q) {
		if err != nil {
			return nil, err
		}
		if read++; len(page.Changes) == in.Limit || bytes >= pageBytesMax || read > pageReadMax {
			page.Next = c.Seq - 1
			break
		}
		if ch := api.ChangeOf(c); ch.About(in.Agent) {
			page.Changes = append(page.Changes, ch)
			bytes += len(c.Data)
		}
	}
	return page, nil
}

// between is the part of the journal that a request names by sequence, entity and time.
func (s *Server) between(ctx context.Context, in *journalIn, head uint64) (journal.Query, error) {
	q := journal.Query{After: uint64(max(0, in.After)), Until: head, Entity: in.Entity}
	if !in.Since.IsZero() {
		before, err := journal.LastAt(ctx, s.engine.Journal(), in.Since.Add(-1))
		if err != nil {
			return q, err
		}
		q.After = max(q.After, before)
	}
	if !in.Until.IsZero() {
		last, err := journal.LastAt(ctx, s.engine.Journal(), in.Until)
		if err != nil {
			return q, err
		}
		q.Until = min(q.Until, last)
	}
	return q, nil
}

// newest converts changes, leaving out the oldest if they are too big together.
func newest(changes []journal.Change) []api.Change {
	first, bytes := len(changes), 0
	for first > 0 && bytes < pageBytesMax {
		first--
		bytes += len(changes[first].Data)
	}
	page := make([]api.Change, 0, len(changes)-first)
	for _, c := range changes[first:] {
		page = append(page, api.ChangeOf(c))
	}
	return page
}
