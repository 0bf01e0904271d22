package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// A Moment is a point of the journal: its last change then, and the time that it is.
type Moment struct {
	Seq  uint64
	Time time.Time
}

// atParameter is the query parameter of routes that can answer as of an earlier moment.
const atParameter = "at"

const aboutAt = "Answer as of then: the sequence of a change, or a time as in RFC 3339. Only what the journal has is known then: there is no evidence of processes, and files are not as they were."

// pastKept is how many moments are ready to answer. A page asks some ten things about one, and goes from one to the next.
const pastKept = 4

type atKey struct{}

// dated refuses a query in which a parameter occurs twice or that is not encoded properly, because two readers could
// understand it in two ways. It takes the parameter `at` out of a request, for answer.
func dated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "" || !strings.HasPrefix(r.URL.Path, api.Base) {
			next.ServeHTTP(w, r)
			return
		}
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			api.NewProblem(http.StatusUnprocessableEntity, "the query is not encoded as in a URL: %s", api.Shorten(err.Error())).Write(w)
			return
		}
		for name, values := range query {
			if len(values) != 1 {
				api.NewProblem(http.StatusUnprocessableEntity, "give %s once", api.Shorten(name)).Write(w)
				return
			}
		}
		at, is := query[atParameter]
		if !is {
			next.ServeHTTP(w, r)
			return
		}
		if r.Method != http.MethodGet {
			api.NewProblem(http.StatusUnprocessableEntity, "%s is for requests that read: the past cannot be changed", atParameter).Write(w)
			return
		}
		query.Del(atParameter)
		now := r.Clone(context.WithValue(r.Context(), atKey{}, at[0]))
		now.URL.RawQuery = query.Encode()
		next.ServeHTTP(w, now)
	})
}

// keptRoute marks a route that can answer as of an earlier moment.
const keptRoute = "as of a moment"

// asOf is a route that can answer as of an earlier moment, because the journal has all that it shows.
func asOf(add adder) adder {
	return func(s *Server, h huma.API, op huma.Operation) {
		op.Metadata = map[string]any{keptRoute: true}
		op.Parameters = append(op.Parameters,
			&huma.Param{Name: atParameter, In: "query", Description: aboutAt, Schema: &huma.Schema{Type: huma.TypeString}})
		add(s, h, op)
	}
}

// then returns the server as of the moment that a request names; itself if it names none. Call done after the answer.
func (s *Server) then(ctx context.Context, op *huma.Operation) (_ *Server, done func(), err error) {
	text, is := ctx.Value(atKey{}).(string)
	switch {
	case !is:
		return s, func() {}, nil
	case op.Metadata[keptRoute] == nil:
		return nil, nil,
			api.NewProblem(http.StatusUnprocessableEntity, "%s cannot be shown as of an earlier moment; leave out %s", op.Path, atParameter)
	case s.ctx.Err() != nil:
		return nil, nil, loop.ErrClosed
	case s.opts.Past == nil:
		return nil, nil, api.NewProblem(http.StatusNotFound, "this server shows no earlier moments")
	}
	at, err := s.moment(ctx, text)
	if err != nil {
		return nil, nil, err
	}
	return s.past.take(ctx, at, func() (*Server, func() error, error) {
		engine, end, err := s.opts.Past(ctx, at)
		if err != nil {
			return nil, nil, fmt.Errorf("show change %d: %w", at.Seq, err)
		}
		then := &Server{
			engine: engine, opts: Options{Dir: s.opts.Dir, Store: s.opts.Store, User: s.opts.User, Version: s.opts.Version},
			log: s.log, waits: s.waits,
		}
		then.ctx, then.cancel = context.WithCancel(s.ctx)
		return then, func() error { then.cancel(); return end() }, nil
	})
}

// moment finds the moment that a text names.
func (s *Server) moment(ctx context.Context, text string) (Moment, error) {
	bad := func(format string, args ...any) error {
		return api.NewProblem(http.StatusUnprocessableEntity, format, args...)
	}
	j := s.engine.Loop.Journal()
	if seq, err := strconv.ParseUint(text, 10, 63); err == nil {
		_, last, err := journal.Until(ctx, j, seq)
		if _, ok := errors.AsType[*journal.NoChange](err); ok {
			err = bad("%s: %v", atParameter, err)
		}
		return Moment{Seq: seq, Time: last.Time}, err
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return Moment{},
			bad("%s is to be the sequence of a change, or a time such as 2026-11-24T09:30:00Z, and is %q", atParameter, api.Shorten(text))
	}
	seq, err := journal.LastAt(ctx, j, at)
	if err != nil || seq > 0 {
		return Moment{Seq: seq, Time: at.UTC()}, err
	}
	_, first, err := journal.Until(ctx, j, 1)
	if err != nil {
		return Moment{}, err
	}
	return Moment{}, bad("the journal begins at %s, after %s", first.Time.Format(time.RFC3339), at.UTC().Format(time.RFC3339))
}

// moments are servers that answer as of earlier moments, the latest used last.
type moments struct {
	pen    chan struct{} // held while one is made, so that a slider that is dragged does not make many at a time
	list   []*pastServer
	ending sync.WaitGroup
}

type pastServer struct {
	at     Moment
	server *Server
	end    func() error
	mu     sync.RWMutex // read while it answers
}

// take returns the server of a moment, and makes it if there is none. done is to be called after the answer.
func (m *moments) take(ctx context.Context, at Moment, open func() (*Server, func() error, error)) (_ *Server, done func(), err error) {
	select {
	case m.pen <- struct{}{}:
		defer func() { <-m.pen }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	n := slices.IndexFunc(m.list, func(p *pastServer) bool { return p.at == at })
	var p *pastServer
	if n >= 0 {
		p = m.list[n]
		m.list = slices.Delete(m.list, n, n+1)
	} else {
		p = &pastServer{at: at}
		if p.server, p.end, err = open(); err != nil {
			return nil, nil, err
		}
	}
	m.list = append(m.list, p)
	p.mu.RLock()
	for len(m.list) > pastKept {
		old := m.list[0]
		m.list = m.list[1:]
		m.ending.Go(func() { _ = old.close() }) // it only read
	}
	return p.server, p.mu.RUnlock, nil
}

// close ends a server after its last answer.
func (p *pastServer) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end()
}

// closeAll ends all of them.
func (m *moments) closeAll() error {
	m.pen <- struct{}{}
	defer func() { <-m.pen }()
	var errs []error
	for _, p := range m.list {
		errs = append(errs, p.close())
	}
	m.list = nil
	m.ending.Wait()
	return errors.Join(errs...)
}
