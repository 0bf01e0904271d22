package server

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/view"
	"github.com/fairlead-dev/fairlead/workspace"
)

func digestRoutes() []route {
	return []route{
		{
			"get-digest", http.MethodGet, "/digest", "Show what happened since the last visit",
			"A few lines: what failed, what finished, what was answered, and what it cost. Empty if nothing happened. It reads at most the last 100,000 changes of the journal.",
			answer(handleDigest),
		},
		{
			"mark-seen", http.MethodPost, "/seen", "Record a visit of the person",
			"The next digest begins here, in every browser. Agents may not do this (X10).",
			answer(handleSeen),
		},
	}
}

type digestIn struct {
	Since time.Time `query:"since" doc:"Absent: since the last visit of a person; without one, nothing is listed"`
}

func handleDigest(ctx context.Context, s *Server, in *digestIn) (*view.Digest, error) {
	seen, err := workspace.ReadSeen(s.opts.Dir)
	if err != nil {
		return nil, err
	}
	d, err := s.engine.Digest(ctx, cmp.Or(in.Since, seen.Visited))
	d.PutAway = view.Moment(seen.PutAway)
	return &d, err
}

type seenIn struct{ Body api.SeenBody }

func handleSeen(ctx context.Context, s *Server, in *seenIn) (*api.Seen, error) {
	if err := identity(ctx).MayOrder("seen", ""); err != nil {
		return nil, err
	}
	at := time.Now().UTC()
	return &api.Seen{At: at}, workspace.Visit(s.opts.Dir, at, in.Body.PutAway)
}
