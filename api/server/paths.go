package server

import (
	"context"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/core/change"
)

// The parts of a path that many routes have. They are exported because huma reads them by reflection.
type (
	AgentPath struct {
		Name string `path:"name" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" example:"coder" doc:"The agent"`
	}
	ChannelPath struct {
		Channel string `path:"channel" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" example:"reviews" doc:"The channel"`
	}
	DispatchPath struct {
		Name string `path:"name" maxLength:"80" pattern:"^[A-Za-z0-9_.-]+$" example:"20261121_153005" doc:"The session"`
	}
	RunPath struct {
		ID string `path:"id" maxLength:"48" pattern:"^[A-Za-z0-9_][A-Za-z0-9._-]*$" example:"f8c1a491" doc:"The run"`
	}
	TaskPath struct {
		ID string `path:"id" maxLength:"48" pattern:"^[A-Za-z0-9_][A-Za-z0-9._-]*$" example:"T1" doc:"The task"`
	}
)

func (c *ChannelPath) name() string { return c.Channel }

// Requests with one of these paths and a body. A body that is a pointer may be left out.
type (
	forAgent[B any] struct {
		AgentPath
		Body B
	}
	forChannel[B any] struct {
		ChannelPath
		Body B
	}
	forDispatch[B any] struct {
		DispatchPath
		Body B
	}
	forRun[B any] struct {
		RunPath
		Body B
	}
	forTask[B any] struct {
		TaskPath
		Body B
	}
)

// only is a request that has a body and nothing else.
type only[B any] struct{ Body B }

type (
	nothing   struct{}
	ableIn    = forAgent[*api.EmptyBody]
	runNoteIn = forRun[*api.NoteBody]
)

// or returns the body of a request, or the zero value if it was left out.
func or[B any](body *B) (b B) {
	if body != nil {
		b = *body
	}
	return b
}

// ordered is a route for an order whose answer is its sequence. may says whether the caller may give it.
func ordered[In any](may func(caller.Identity, *In) error, do func(context.Context, *app.App, change.Actor, *In) (uint64, error)) adder {
	return answer(func(ctx context.Context, s *Server, in *In) (*api.Ordered, error) {
		if err := may(identity(ctx), in); err != nil {
			return nil, err
		}
		seq, err := do(ctx, s.engine, s.actor(ctx), in)
		return &api.Ordered{Seq: seq}, err
	})
}
