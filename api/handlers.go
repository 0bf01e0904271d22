package api

import (
	"context"
	"os"
	"time"

	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/view"
)

// answerMax bounds how long an answer may take; streams have no end.
const answerMax = 30 * time.Second

type nothing struct{}

type agentIn struct {
	Name string `path:"name" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" example:"coder" doc:"The agent"`
}

// noteBody is who asks adding why.
type noteBody struct {
	Note string `json:"note,omitempty" maxLength:"1000" doc:"Why, for people; it stands beside the order"`
}

type orderIn struct {
	Name string `path:"name" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" example:"coder" doc:"The agent"`
	Body *noteBody
}

type holdIn struct {
	Body *noteBody
}

func (b *noteBody) note() string {
	if b == nil {
		return ""
	}
	return b.Note
}

func (s *Server) team(ctx context.Context, _ *nothing) (*view.TeamView, error) {
	view, err := s.engine.Team(ctx)
	view.Agents = some(view.Agents)
	return &view, err
}

func (s *Server) why(ctx context.Context, in *agentIn) (*view.WhyView, error) {
	view, err := s.engine.Why(ctx, in.Name)
	view.Evidence, view.Sessions = some(view.Evidence), some(view.Sessions)
	return &view, err
}

// order is a route that wants one of the seed's four words of an agent.
func order(desired string) adder {
	return answer(func(s *Server, ctx context.Context, in *orderIn) (*Commanded, error) {
		if err := mayOrder(ctx, "wanted_"+desired, in.Name); err != nil {
			return nil, err
		}
		seq, agent, err := s.engine.Order(ctx, s.actor(ctx), in.Name, desired, in.Body.note())
		return &Commanded{Seq: seq, Agent: agent}, err
	})
}

// orders are the verbs and what they make of desired_state.
var orders = map[Verb]string{
	Start: control.WordContinuous, Stop: control.WordPause, Once: control.WordRunOnce, Cleanup: control.WordRunCleanup,
}

func hold(on bool) adder {
	return answer(func(s *Server, ctx context.Context, in *holdIn) (*Held, error) {
		if !on {
			if err := mayOrder(ctx, "release", ""); err != nil {
				return nil, err
			}
		}
		seq, err := s.engine.Hold(ctx, s.actor(ctx), on, in.Body.note())
		return &Held{Seq: seq, Hold: on}, err
	})
}

type downIn struct {
	Body *struct {
		Now bool `json:"now,omitempty" doc:"End the sessions that run instead of letting them finish"`
	}
}

func (s *Server) down(ctx context.Context, in *downIn) (*Stopping, error) {
	if err := mayOrder(ctx, "down", ""); err != nil {
		return nil, err
	}
	now := in.Body != nil && in.Body.Now
	return &Stopping{Stopping: true}, s.engine.Stop(ctx, s.actor(ctx), now)
}

func (s *Server) status(ctx context.Context, _ *nothing) (*Status, error) {
	st, err := s.engine.Status(ctx)
	return &Status{
		Version: s.opts.Version, PID: os.Getpid(), StartedAt: st.StartedAt.UTC(), UptimeMS: time.Since(st.StartedAt).Milliseconds(),
		Dir: s.opts.Dir, Journal: JournalStatus{Head: st.Head, Backend: s.opts.Store}, Subscribers: int(s.watchers.Load()),
	}, err
}
