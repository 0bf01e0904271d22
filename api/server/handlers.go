package server

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/read/view"
)

func handleTeam(ctx context.Context, s *Server, _ *nothing) (*view.TeamView, error) {
	team, err := s.engine.Status.Team(ctx)
	team.Agents, team.Past = some(team.Agents), stale(s)
	return &team, err
}

// stale says that an answer may not be the present state.
func stale(s *Server) (p view.Past) {
	if is := leaderOf(s); is.NoLeaderSince != nil {
		p.AsOf, p.NoLeaderSince = is.AsOf, is.NoLeaderSince
	}
	return p
}

func leaderOf(s *Server) api.Leader {
	if s.opts.Leader == nil {
		return api.Leader{Leads: true}
	}
	return s.opts.Leader()
}

func handleWhy(ctx context.Context, s *Server, in *AgentPath) (*view.WhyView, error) {
	view, err := s.engine.Status.Why(ctx, in.Name)
	view.Evidence, view.Sessions = some(view.Evidence), some(view.Sessions)
	return &view, err
}

// order is a route that sets an agent's desired_state.
func order(desired string) adder {
	return answer(func(ctx context.Context, s *Server, in *forAgent[*api.NoteBody]) (*api.Commanded, error) {
		if err := identity(ctx).MayOrder("wanted_"+desired, in.Name); err != nil {
			return nil, err
		}
		seq, agent, err := s.engine.Status.Order(ctx, s.actor(ctx), in.Name, desired, or(in.Body).Note)
		return &api.Commanded{Seq: seq, Agent: agent}, err
	})
}

// orders are the verbs and the desired_state that each sets.
var orders = map[api.Verb]string{
	api.Start: control.WordContinuous, api.Stop: control.WordPause, api.Once: control.WordRunOnce, api.Cleanup: control.WordRunCleanup,
}

func hold(on bool) adder {
	return answer(func(ctx context.Context, s *Server, in *only[*api.NoteBody]) (*api.Held, error) {
		if !on {
			if err := identity(ctx).MayOrder("release", ""); err != nil {
				return nil, err
			}
		}
		seq, err := s.engine.Agents.Hold(ctx, s.actor(ctx), on, or(in.Body).Note)
		return &api.Held{Seq: seq, Hold: on}, err
	})
}

type downIn struct {
	Body *struct {
		Now bool `json:"now,omitempty" doc:"End running sessions instead of letting them finish"`
	}
}

func handleDown(ctx context.Context, s *Server, in *downIn) (*api.Stopping, error) {
	if err := identity(ctx).MayOrder("down", ""); err != nil {
		return nil, err
	}
	now := in.Body != nil && in.Body.Now
	if s.opts.Stop == nil {
		return &api.Stopping{Stopping: true}, s.engine.Agents.Stop(ctx, s.actor(ctx), now)
	}
	unwritten, err := s.opts.Stop(ctx, s.actor(ctx), now)
	return &api.Stopping{Stopping: true, Unwritten: unwritten}, err
}

func handleReload(ctx context.Context, s *Server, in *only[*api.ReloadBody]) (*api.Reloaded, error) {
	if err := identity(ctx).MayOrder("reload", ""); err != nil {
		return nil, err
	}
	if s.opts.Reload == nil {
		return nil, api.NewProblem(http.StatusNotImplemented, "this daemon cannot load fairlead.yaml again; stop it and start it anew")
	}
	st, err := s.engine.Status.Status(ctx)
	if err != nil {
		return nil, err
	}
	leader := ""
	if err := s.engine.Loop.View(ctx, func(t *team.Team) { leader = t.Leader }); err != nil {
		return nil, err
	}
	want := api.ReloadBody{}
	if in.Body != nil {
		want = *in.Body
	}
	if want.Governing != "" {
		if err := identity(ctx).MayConfigure("reload"); err != nil {
			return nil, err
		}
	}
	changes, err := s.opts.Reload(ctx, s.actor(ctx), want)
	return &api.Reloaded{Changes: some(changes), Head: st.Head, Leader: leader}, err
}

func handleStatus(ctx context.Context, s *Server, _ *nothing) (*api.Status, error) {
	st, err := s.engine.Status.Status(ctx)
	fault := ""
	if s.opts.ReloadFault != nil {
		fault = s.opts.ReloadFault.Error()
	}
	return &api.Status{
		ReloadFault: fault,
		Version:     s.opts.Version, PID: os.Getpid(), StartedAt: st.StartedAt.UTC(), UptimeMS: time.Since(st.StartedAt).Milliseconds(),
		Dir: s.opts.Dir, Journal: api.JournalStatus{Head: st.Head, Backend: s.opts.Store}, Subscribers: int(s.watchers.Load()),
	}, err
}
