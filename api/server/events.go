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
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

const (
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
	place, err := s.place(ctx, in)
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
	watch := &watcher{s: s, out: out, place: place, entity: in.Entity, poll: in.Poll}
	// The id without data lets a client that is cut off before the first change resume here.
	if err := out.send([]byte("id: " + strconv.FormatUint(place, 10) + "\n\n")); err != nil {
		return
	}
	if err := watch.run(ctx); err != nil {
		out.bye(err)
	}
	out.over(in.Poll)
}

// place returns the sequence after which a stream begins.
func (s *Server) place(ctx context.Context, in *eventsIn) (uint64, error) {
	head, _, err := s.engine.Loop.Journal().Head(ctx)
	if err != nil {
		return 0, err
	}
	place := head
	switch {
	case in.LastEventID >= 0:
		place = uint64(in.LastEventID)
	case in.After >= 0 && in.Tail > 0:
		return 0, twoStarts(in.Tail)
	case in.After >= 0:
		place = uint64(in.After)
	case in.Tail > 0:
		last, err := s.last(ctx, in.Tail, journal.Query{Until: head, Entity: in.Entity}, "")
		if err != nil {
			return 0, err
		}
		if len(last) > 0 {
			place = last[0].Seq - 1
		}
	}
	if place > head {
		return 0, api.NewProblem(http.StatusGone,
			"the journal ends at %d, before the requested %d: it is not the journal that you read earlier; start again with after=0", head,
			place)
	}
	return place, nil
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
		for c, err := range s.engine.Loop.Journal().Read(ctx, journal.Query{After: after, Until: until, Entity: q.Entity}) {
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
	place  uint64 // the last sequence that was sent
	entity string // empty: all
	poll   bool   // the first changes end the answer
}

// run sends changes until the client is gone (it then returns nil), or returns why it ends the
// stream.
func (t *watcher) run(ctx context.Context) error {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	late := t.pollEnd()
	for {
		part, err := t.s.engine.Loop.Since(ctx, t.place, t.entity)
		if err != nil {
			return stillThere(ctx, err)
		}
		if t.tell(part.Changes) != nil || t.poll && len(part.Changes) > 0 {
			return nil
		}
		t.place = part.Upto
		select {
		case <-part.More:
		case <-ping.C:
			if t.out.send(pingMessage) != nil {
				return nil
			}
		case <-late:
			return nil
		case <-ctx.Done():
			return nil
		case <-t.s.ctx.Done():
			return loop.ErrClosed
		}
	}
}

// pollEnd is when an answer to a poll ends without news; nil: never, because it is a stream.
func (t *watcher) pollEnd() <-chan time.Time {
	if !t.poll {
		return nil
	}
	return time.After(t.s.waits.poll)
}

// tell writes changes and flushes them at once.
func (t *watcher) tell(changes []loop.Change) error {
	if len(changes) == 0 {
		return nil
	}
	for i := range changes {
		if err := t.out.write(changes[i].Text(changeMessage)); err != nil {
			return err
		}
	}
	return t.out.flush()
}

func changeMessage(c *journal.Change) []byte {
	return message("change", strconv.FormatUint(c.Seq, 10), api.ChangeOf(*c))
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
	head, _, err := s.engine.Loop.Journal().Head(ctx)
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
	for c, err := range s.engine.Loop.Journal().Read(ctx, q) {
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
		before, err := journal.LastAt(ctx, s.engine.Loop.Journal(), in.Since.Add(-1))
		if err != nil {
			return q, err
		}
		q.After = max(q.After, before)
	}
	if !in.Until.IsZero() {
		last, err := journal.LastAt(ctx, s.engine.Loop.Journal(), in.Until)
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
