package server

import (
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
	if in.Since.IsZero() {
		in.Since = seen.Visited
	}
	if err != nil || in.Since.IsZero() {
		return &view.Digest{Lines: []view.DigestLine{}}, err
	}
	d, err := s.engine.Digest(ctx, in.Since)
	d.PutAway = view.Moment(seen.PutAway)
	d.Lines = some(d.Lines)
	return &d, err
}

type seenIn struct{ Body api.SeenBody }

func handleSeen(ctx context.Context, s *Server, in *seenIn) (*api.SeenBody, error) {
	if err := identity(ctx).MayOrder("seen", ""); err != nil {
		return nil, err
	}
	next := workspace.Seen{Visited: time.Now().UTC()}
	if in.Body.PutAway {
		next.PutAway = next.Visited
	}
	_, err := workspace.WriteSeen(s.opts.Dir, next)
	return &in.Body, err
}
