package server

import (
	"context"
	"errors"
	"net/http"
	"os"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/repos"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/read/view"
)

type repositoryIn struct {
	ID string `path:"id" maxLength:"18" pattern:"^d-[0-9a-f]{16}$" example:"d-0123456789abcdef" doc:"The repository, as /repositories names it"`
}

func repositoryRoutes() []route {
	return []route{
		{
			"get-summary", http.MethodGet, "/summary", "Show the repository in numbers",
			"What other daemons of this user ask over the socket.",
			answer(handleSummary),
		},
		{
			"list-repositories", http.MethodGet, "/repositories", "List the repositories of this user",
			"All daemons of this user, found by their sockets, each with a summary, and those that do not answer. Agents may not do this (X10).",
			answer(func(ctx context.Context, s *Server, _ *nothing) (*api.Repositories, error) {
				if err := identity(ctx).MayLogin("list_repositories"); err != nil {
					return nil, err
				}
				all := repos.List(ctx, s.repository())
				all.Outside = ctx.Value(entranceKey{}) == entranceAway
				return &all, nil
			}),
		},
		{
			"sign-in-to-repository", http.MethodPost, "/repositories/{id}/login", "Sign this browser in at another repository",
			"Gets a login code from the daemon of the other repository. Only for a browser that is signed in, on this machine, whose process belongs to this user: such a process could ask the other daemon's socket itself. Refused for the token for programs, through a tunnel's or proxy's origin, and for agents (X10).",
			answer(handleRepositoryLogin),
		},
	}
}

func handleSummary(ctx context.Context, s *Server, _ *nothing) (*api.Summary, error) {
	team, err := s.engine.Status.Team(ctx)
	if err != nil {
		return nil, err
	}
	inbox, err := s.engine.Status.Inbox(ctx)
	sum := &api.Summary{
		Dir: s.repository(), Name: team.Team, Version: api.VersionOrZero(s.opts.Version), PID: os.Getpid(), Address: s.opts.Address,
		Origins:  []string{},
		NeedsYou: len(inbox), Agents: len(team.Agents), Hold: team.Hold, Stopping: team.Stopping,
	}
	for _, a := range team.Agents {
		if a.Status == view.StatusRunning || a.Status == view.StatusStopping || a.Status == view.StatusUnknown {
			sum.Working++
		}
	}
	for _, o := range s.opts.Origins {
		sum.Origins = append(sum.Origins, o.String())
	}
	return sum, err
}

func handleRepositoryLogin(ctx context.Context, _ *Server, in *repositoryIn) (*api.RepositoryLogin, error) {
	is := identity(ctx)
	if err := is.MayLogin("repository_login"); err != nil {
		return nil, err
	}
	if ctx.Value(entranceKey{}) != entrancePage || !is.Seen {
		return nil, &table.Refusal{
			Subject: "Mission Control", Event: "repository_login",
			State: "the browser is not known to be yours on this machine", Reason: "run `fairlead open` in the other repository",
		}
	}
	url, err := repos.Login(ctx, in.ID)
	if errors.Is(err, repos.ErrUnknown) {
		return nil, api.NewProblem(http.StatusNotFound, "%s; see `fairlead repos`", err)
	}
	if err != nil {
		return nil, api.NewProblem(http.StatusBadGateway, "%s; run `fairlead open` in that repository", err)
	}
	return &api.RepositoryLogin{URL: url}, nil
}
