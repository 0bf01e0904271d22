package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/read/search"
	"github.com/fairlead-dev/fairlead/read/view"
)

func searchRoutes() []route {
	return []route{{
		"search-all", http.MethodGet, "/search", "Search everything that was said, done, asked and changed",
		"Finds passages that have all words of `q`, the newest first: in the output of all sessions, in channels, lead sessions, questions, runs, tasks, dispatches and the history. A word with three characters or more also finds longer words that begin with it. The index follows the journal a few seconds later; `index` says how far it is. A search ends after 2 seconds; `stopped` says so. Status 422: the query has no letter or digit, or is too long. Status 503: the index cannot be used now.",
		answer(handleSearch),
	}}
}

func handleSearch(ctx context.Context, s *Server, in *api.SearchQuery) (*view.SearchPage, error) {
	if s.opts.Search == nil {
		return nil, api.NewProblem(http.StatusServiceUnavailable, "there is no search index here; `fairlead up` makes one")
	}
	found, err := s.opts.Search.Find(ctx, search.Query(*in))
	if bad, ok := errors.AsType[*search.BadQuery](err); ok {
		p := api.NewProblem(http.StatusUnprocessableEntity, "%s", bad.Why)
		p.Errors = []api.Fault{{Message: bad.Why, Location: "query.q"}}
		return nil, p
	}
	if gone, ok := errors.AsType[*search.Unavailable](err); ok {
		return nil, api.NewProblem(http.StatusServiceUnavailable, "%s", gone)
	}
	if err != nil && s.opts.Search.Damaged() {
		return nil, api.NewProblem(http.StatusServiceUnavailable,
			"the search index is damaged; it is built again, which takes minutes after much output")
	}
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	page := &view.SearchPage{
		Results: []view.SearchResult{}, Next: found.Next, Stopped: found.Stopped,
		TookMS: float64(found.Took.Microseconds()) / 1000,
	}
	for i := range found.Found {
		page.Results = append(page.Results, resultOf(&found.Found[i]))
	}
	page.Index, err = indexState(ctx, s.engine.Loop.Journal(), found.Position)
	return page, err
}

func indexState(ctx context.Context, j journal.Journal, at search.Position) (view.SearchIndex, error) {
	state := view.SearchIndex{Seq: at.Seq, Dropped: at.Dropped, BytesLimit: search.BytesMax}
	if !at.Time.IsZero() {
		state.AsOf = &at.Time
	}
	if !at.Reach.IsZero() {
		state.DroppedAt = &at.Reach
	}
	head, _, err := j.Head(ctx)
	if head > at.Seq {
		state.Behind = head - at.Seq
	}
	return state, err
}

func resultOf(f *search.Found) view.SearchResult {
	r := view.SearchResult{
		Kind: f.Kind, Entity: f.Entity, Part: f.Part, Agent: f.Agent, At: f.Time, Snippet: f.Snippet, Matches: some(f.Matches),
		Link: linkOf(f),
	}
	switch {
	case f.Kind == search.Output:
		r.Offset = &f.At
	case f.At > 0:
		r.Seq = uint64(f.At)
	}
	return r
}

// linkOf is the address in the page at which a result is shown.
func linkOf(f *search.Found) string {
	at, where := view.PageLink, strconv.FormatInt(f.At, 10)
	switch f.Kind {
	case search.Output:
		if f.Agent != "" {
			return at("agents", f.Agent, "output", f.Entity, where)
		}
		slot := f.Entity[:max(strings.LastIndexByte(f.Entity, '-'), 0)]
		step, run, _ := strings.Cut(slot, "@")
		return at("runs", run, step)
	case search.Channel:
		return at("channels", f.Entity, where)
	case search.Crew:
		return at("crew", cmp.Or(f.Agent, "@lead"), "transcript", where)
	case search.Run:
		return at("runs", f.Entity, f.Part)
	case search.Task:
		return at("tasks", f.Entity, f.Part)
	case search.Question:
		return at("inbox", f.Entity)
	case search.Dispatch:
		return at("dispatch", f.Entity, f.Part)
	}
	if f.Agent == "" {
		return at("history", where)
	}
	return at("agents", f.Agent, "history", where)
}
