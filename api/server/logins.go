package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/login"
	"github.com/fairlead-dev/fairlead/core/table"
)

// loginsPath is where a code is exchanged: the only route of the API that needs no secret.
const loginsPath = "/logins"

type loginIDIn struct {
	ID string `path:"id" maxLength:"16" pattern:"^l[0-9]+$" example:"l3" doc:"The id of the login"`
}

func loginRoutes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{
			"issue-login-code", post, "/login-codes", "Issue a login code",
			"A code signs one browser in. It is valid once and for 30 seconds. Over TCP this needs the token for programs: a page cannot sign other browsers in. Agents may not do this (X10).",
			answer(handleLoginCode),
		},
		{
			"sign-in", post, loginsPath, "Exchange a login code for a secret",
			"The only route that needs no token. The secret is valid over TCP like the token, until it is revoked; only its hash is stored. Status 401: the code is wrong, used or old. Status 429: too many wrong codes came, and none is accepted for 30 seconds. Agents may not do this (X10).",
			answer(handleSignIn),
		},
		{
			"list-logins", get, loginsPath, "List the browsers that are signed in",
			"The oldest first. There are at most 50: a further one signs out the one that was unused for longest.",
			answer(handleLogins),
		},
		{
			"revoke-login", http.MethodDelete, loginsPath + "/{id}", "Sign a browser out",
			"Its secret is no longer valid, and its open streams end. Agents may not do this (X10).",
			answer(handleRevokeLogin),
		},
	}
}

// logins returns the logins of this daemon, or a problem.
func (s *Server) logins() (*login.Logins, error) {
	if s.opts.Logins == nil {
		return nil, api.NewProblem(http.StatusNotFound, "no browser can sign in to this fairlead server")
	}
	return s.opts.Logins, nil
}

func handleLoginCode(ctx context.Context, s *Server, _ *only[*api.EmptyBody]) (*api.LoginCode, error) {
	if err := identity(ctx).MayLogin("login"); err != nil {
		return nil, err
	}
	if by := ctx.Value(entranceKey{}); by == entrancePage || by == entranceAway {
		return nil, &table.Refusal{
			Subject: "Mission Control", Event: "login", State: "asked by a page",
			Reason: "a page cannot sign other browsers in; run `fairlead open --code`",
		}
	}
	all, err := s.logins()
	if err != nil {
		return nil, err
	}
	code, until := all.NewCode()
	return &api.LoginCode{Code: code, ExpiresAt: until.UTC().Truncate(time.Millisecond)}, nil
}

func handleSignIn(ctx context.Context, s *Server, in *only[api.LoginBody]) (*api.LoginSecret, error) {
	if err := identity(ctx).MayLogin("login"); err != nil {
		return nil, err
	}
	all, err := s.logins()
	if err != nil {
		return nil, err
	}
	secret, is, err := all.Redeem(in.Body.Code, in.Body.Name)
	if no := (*login.Refused)(nil); errors.As(err, &no) {
		status := http.StatusUnauthorized
		if no.Fault == login.TooMany {
			status = http.StatusTooManyRequests
			s.log.Warn("too many wrong login codes; none is accepted for a while")
		}
		return nil, api.NewProblem(status, "%s", no)
	}
	if err != nil {
		return nil, err
	}
	s.log.Info("a browser signed in", "login", is.ID, "name", is.Name)
	return &api.LoginSecret{ID: is.ID, Secret: secret}, nil
}

func handleLogins(_ context.Context, s *Server, _ *nothing) (*api.Logins, error) {
	all, err := s.logins()
	if err != nil {
		return nil, err
	}
	out := &api.Logins{Logins: []api.Login{}}
	for _, l := range all.List() {
		out.Logins = append(out.Logins, api.Login(l))
	}
	return out, nil
}

func handleRevokeLogin(ctx context.Context, s *Server, in *loginIDIn) (*api.LoginRevoked, error) {
	if err := identity(ctx).MayLogin("revoke"); err != nil {
		return nil, err
	}
	all, err := s.logins()
	if err != nil {
		return nil, err
	}
	done, err := all.Revoke(in.ID)
	if err != nil {
		return nil, err
	}
	if !done {
		return nil, api.NewProblem(http.StatusNotFound, "there is no login %s; see `fairlead open --list`", in.ID)
	}
	s.log.Info("a login was revoked", "login", in.ID)
	return &api.LoginRevoked{ID: in.ID}, nil
}
