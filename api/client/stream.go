package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/internal/retry"
)

const (
	silenceMax  = 40 * time.Second // more than two pings are missing: the connection is dead
	resumeFirst = 100 * time.Millisecond
	resumeLast  = 2 * time.Second
	resumeFor   = 10 * time.Second // how long a daemon may be away during a restart
)

// FromNow is a starting point: only new changes.
const FromNow = -1

// EventsQuery selects changes.
type EventsQuery struct {
	After  int64  // all after this sequence; 0: from the beginning; FromNow: only new ones
	Tail   int    // begin with this many earlier changes instead; After is ignored then
	Entity string // only this entity; empty: all
}

// Events follows the journal, each change once and in order. After an interruption it continues
// where it was, also if the daemon was restarted meanwhile. It ends without an error when ctx ends,
// otherwise with one: *NoDaemon if no daemon came back, *Problem if the starting point is not in
// this journal.
func (c *Client) Events(ctx context.Context, q EventsQuery) iter.Seq2[api.Change, error] {
	return func(yield func(api.Change, error) bool) {
		v := url.Values{}
		switch {
		case q.Tail > 0:
			v.Set("tail", strconv.Itoa(q.Tail))
		case q.After >= 0:
			v.Set("after", strconv.FormatInt(q.After, 10))
		}
		if q.Entity != "" {
			v.Set("entity", q.Entity)
		}
		err := c.follow(ctx, "/events", v, func(e api.Event) (bool, error) {
			if e.Name != "change" {
				return true, nil
			}
			var ch api.Change
			if err := json.Unmarshal(e.Data, &ch); err != nil {
				return false, fmt.Errorf("read a change: %w; does the daemon have another version?", err)
			}
			return yield(ch, nil), nil
		})
		if err != nil {
			yield(api.Change{}, err)
		}
	}
}

// Next waits for a change after a sequence of the journal for which is reports true, and returns its sequence.
func (c *Client) Next(ctx context.Context, after uint64, is func(api.Change) bool) (uint64, error) {
	for change, err := range c.Events(ctx, EventsQuery{After: int64(after)}) { //nolint:gosec // no journal is that long
		switch {
		case err != nil:
			return after, err
		case is(change):
			return change.Seq, nil
		}
	}
	return after, ctx.Err()
}

// Changed sends that there were changes, several as one, until ctx ends; ended then has the reason.
func (c *Client) Changed(ctx context.Context, q EventsQuery) (changed <-chan struct{}, ended <-chan error) {
	news, over := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		for _, err := range c.Events(ctx, q) {
			if err != nil {
				over <- err
				return
			}
			select {
			case news <- struct{}{}:
			default:
			}
		}
		over <- ctx.Err()
	}()
	return news, over
}

// OutputQuery says where in a session's output to begin.
type OutputQuery struct {
	From int64 // offset of the first byte
	Tail int64 // begin about this many bytes before the end instead; From is ignored then
}

// Heard is a piece of a session's output, or its end.
type Heard struct {
	api.Output
	End *api.Ended // set in the last one, which has no text
}

// Output follows a session's output as text until the session is over; after an interruption it
// continues where it was. RawOutput returns the unchanged bytes.
func (c *Client) Output(ctx context.Context, session string, q OutputQuery) iter.Seq2[Heard, error] {
	return func(yield func(Heard, error) bool) {
		v := url.Values{"from": {strconv.FormatInt(q.From, 10)}}
		if q.Tail > 0 {
			v = url.Values{"tail": {strconv.FormatInt(q.Tail, 10)}}
		}
		err := c.follow(ctx, "/sessions/"+url.PathEscape(session)+"/output/stream", v, func(e api.Event) (bool, error) {
			var heard Heard
			var err error
			switch e.Name {
			case "output":
				err = json.Unmarshal(e.Data, &heard.Output)
			case "end":
				heard.End = &api.Ended{}
				err = json.Unmarshal(e.Data, heard.End)
			default:
				return true, nil
			}
			if err != nil {
				return false, fmt.Errorf("read the output of %s: %w; does the daemon have another version?", session, err)
			}
			return yield(heard, nil) && heard.End == nil, nil
		})
		if err != nil {
			yield(Heard{}, err)
		}
	}
}

// errEnough says that the caller has stopped reading.
var errEnough = errors.New("enough")

// follow reads a stream and reconnects when it breaks.
func (c *Client) follow(ctx context.Context, path string, query url.Values, take func(api.Event) (bool, error)) error {
	line := &line{path: path, query: query, header: http.Header{"Accept": {"text/event-stream"}}}
	again := retry.Pauses{First: resumeFirst, Most: resumeLast, Spread: true}
	line.take = func(e api.Event) error {
		again.Reset()
		if e.ID != "" {
			line.header.Set("Last-Event-ID", e.ID)
		}
		if e.Name == "bye" {
			return byeIn(e)
		}
		more, err := take(e)
		if err == nil && !more {
			err = errEnough
		}
		return err
	}
	var lost time.Time // when the connection was lost
	for {
		line.open = false
		err := c.listen(ctx, line)
		var broken *brokenLine
		if errors.Is(err, errEnough) || ctx.Err() != nil {
			return nil //nolint:nilerr // an end that the caller requested
		}
		switch {
		case !errors.As(err, &broken) || !line.ever:
			return err
		case line.open || lost.IsZero():
			lost = time.Now()
		case time.Since(lost) > resumeFor:
			return broken.err
		}
		if !again.Rest(ctx) {
			return nil
		}
	}
}

// byeIn distinguishes a goodbye after which reconnecting makes sense from one after which it does
// not.
func byeIn(e api.Event) error {
	var b api.Bye
	if err := json.Unmarshal(e.Data, &b); err != nil || b.Reason == "failed" {
		return api.NewProblem(http.StatusInternalServerError, "the daemon closed the stream: %s", b.Detail)
	}
	return &brokenLine{errors.New(b.Detail)}
}

// line is a stream that can be resumed.
type line struct {
	path   string
	query  url.Values
	header http.Header // with the last id, if there is one
	take   func(api.Event) error
	open   bool // this connection was established
	ever   bool
}

// brokenLine says that a retry makes sense.
type brokenLine struct{ err error }

func (b *brokenLine) Error() string { return b.err.Error() }
func (b *brokenLine) Unwrap() error { return b.err }

// listen reads a stream over one connection. It always returns an error.
func (c *Client) listen(ctx context.Context, l *line) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(silenceMax, cancel)
	defer silence.Stop()
	resp, err := c.ask(ctx, http.MethodGet, l.path, l.query, nil, l.header)
	var p *api.Problem
	switch {
	case errors.As(err, &p) && p.Status != http.StatusServiceUnavailable || errors.As(err, new(*Refused)):
		return err
	case err != nil:
		return &brokenLine{err}
	}
	defer resp.Body.Close()
	l.open, l.ever = true, true
	var ours error
	err = api.ReadEvents(resp.Body, func() { silence.Reset(silenceMax) }, func(e api.Event) bool {
		ours = l.take(e)
		return ours == nil
	})
	if ours != nil {
		return ours
	}
	return &brokenLine{fmt.Errorf("the connection to the fairlead daemon of %s broke: %w", c.dir, err)}
}
