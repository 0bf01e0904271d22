package server

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/read/view"
)

func digestRoutes() []route {
	return []route{
		{
			"get-digest", http.MethodGet, "/digest", "Show what happened since a person looked",
			"Up to 100 lines: what failed, what finished, what was answered, and what it cost. Empty if nothing happened. It reads at most the last 100,000 changes of the journal.",
			answer(handleDigest),
		},
		{
			"mark-seen", http.MethodPost, "/seen", "Mark what happened as seen",
			"The next digest begins here, in every browser. Agents may not do this (X10).",
			answer(handleSeen),
		},
	}
}

// firstDigest is how far back a digest begins if nothing was ever marked as seen.
const firstDigest = 24 * time.Hour

type digestIn struct {
	Since time.Time `query:"since" doc:"Absent: since a person marked everything as seen, or since a day ago"`
}

func handleDigest(ctx context.Context, s *Server, in *digestIn) (*view.Digest, error) {
	seen, err := workspace.ReadSeen(s.opts.Dir)
	if err != nil {
		return nil, err
	}
	first := in.Since.IsZero() && seen.IsZero()
	since := cmp.Or(in.Since, seen)
	if first {
		since = time.Now().Add(-firstDigest).UTC().Truncate(time.Hour) // the same one for an hour
	}
	d, err := s.engine.Status.Digest(ctx, since)
	d.First = first
	return &d, err
}

type seenIn struct{ Body api.SeenBody }

func handleSeen(ctx context.Context, s *Server, in *seenIn) (*api.Seen, error) {
	if err := identity(ctx).MayOrder("seen", ""); err != nil {
		return nil, err
	}
	until := time.Now().UTC()
	if at := in.Body.Until; !at.IsZero() && at.Before(until) {
		until = at.UTC()
	}
	return &api.Seen{Until: until}, workspace.MarkSeen(s.opts.Dir, until)
}
