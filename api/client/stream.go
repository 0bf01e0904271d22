package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/fairlead-dev/fairlead/api"
)

const (
	silenceMax  = 40 * time.Second // two pings and a half: the line is dead
	resumeFirst = 100 * time.Millisecond
	resumeLast  = 2 * time.Second
	resumeFor   = 10 * time.Second // that a daemon may be away, to be started anew or replaced
)

// FromNow is a place to begin at: only what comes.
const FromNow = -1

// EventsQuery says which changes are wanted.
type EventsQuery struct {
	After  int64  // everything after this sequence: 0 is from the beginning; FromNow: only what comes
	Tail   int    // begin with the last so many instead; After is not looked at then
	Entity string // only this entity; empty: all
}

// Events follows the journal, each change once and in order. A line that breaks is taken
// up again where it was cut, also where the daemon was started anew meanwhile. It ends
// with ctx (then without an error), or with one: *NoDaemon where nobody came back,
// *Problem where the place is not one of this journal.
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
				return false, fmt.Errorf("read a change: %w; is the daemon of another version?", err)
			}
			return yield(ch, nil), nil
		})
		if err != nil {
			yield(api.Change{}, err)
		}
	}
}

// OutputQuery says where in a session's output to begin.
type OutputQuery struct {
	From int64 // offset of the first byte
	Tail int64 // begin about so many bytes before the end instead; From is not looked at then
}

// Heard is a piece of a session's output, or its end.
type Heard struct {
	api.Output
	End *api.Ended // set in the last one, which has no text
}

// Output follows what a session says, as text, until it is over and all was told; a line
// that breaks is taken up again. For the bytes as they are there is RawOutput.
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
				return false, fmt.Errorf("read the output of %s: %w; is the daemon of another version?", session, err)
			}
			return yield(heard, nil) && heard.End == nil, nil
		})
		if err != nil {
			yield(Heard{}, err)
		}
	}
}

// errEnough says that whoever listens wants no more.
var errEnough = errors.New("enough")

// follow reads a stream, and takes it up again where it broke.
func (c *Client) follow(ctx context.Context, path string, query url.Values, take func(api.Event) (bool, error)) error {
	line := &line{path: path, query: query, header: http.Header{"Accept": {"text/event-stream"}}}
	pause := resumeFirst
	line.take = func(e api.Event) error {
		pause = resumeFirst
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
	var lost time.Time // since when there was no line
	for {
		line.open = false
		err := c.listen(ctx, line)
		var broken *brokenLine
		if errors.Is(err, errEnough) || ctx.Err() != nil {
			return nil //nolint:nilerr // an end that was wished for
		}
		switch {
		case !errors.As(err, &broken) || !line.ever:
			return err
		case line.open || lost.IsZero():
			lost = time.Now()
		case time.Since(lost) > resumeFor:
			return broken.err
		}
		// Half of it at least, so that not all come back at the same moment.
		wait := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return nil
		}
		pause = min(2*pause, resumeLast)
	}
}

// byeIn tells a goodbye after which coming back makes sense from one after which it does not.
func byeIn(e api.Event) error {
	var b api.Bye
	if err := json.Unmarshal(e.Data, &b); err != nil || b.Reason == "failed" {
		return api.NewProblem(http.StatusInternalServerError, "the daemon closed the line: %s", b.Detail)
	}
	return &brokenLine{errors.New(b.Detail)}
}

// line is a stream that may be taken up again.
type line struct {
	path   string
	query  url.Values
	header http.Header // with the last id, once there is one
	take   func(api.Event) error
	open   bool // this time it was
	ever   bool
}

// brokenLine says that trying again makes sense.
type brokenLine struct{ err error }

func (b *brokenLine) Error() string { return b.err.Error() }
func (b *brokenLine) Unwrap() error { return b.err }

// listen reads one life of a stream. It always ends with an error.
func (c *Client) listen(ctx context.Context, l *line) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(silenceMax, cancel)
	defer silence.Stop()
	resp, err := c.ask(ctx, http.MethodGet, l.path, l.query, nil, l.header)
	var p *api.Problem
	var refused *Refused
	switch {
	case errors.As(err, &p) && p.Status != http.StatusServiceUnavailable || errors.As(err, &refused):
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
	return &brokenLine{fmt.Errorf("the line to the fairlead of %s broke: %w", c.dir, err)}
}
