package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/fairlead-dev/fairlead/api"
)

// Logins has the requests about the browsers that are signed in to Mission Control.
type Logins struct{ client *Client }

// NewCode issues a code that signs one browser in. The error is a *Refused if the caller is an agent.
func (c Logins) NewCode(ctx context.Context) (api.LoginCode, error) {
	return Post[api.LoginCode](ctx, c.client, "/login-codes", api.EmptyBody{})
}

// List returns the browsers that are signed in, the oldest first.
func (c Logins) List(ctx context.Context) ([]api.Login, error) {
	all, err := Get[api.Logins](ctx, c.client, "/logins", nil)
	return all.Logins, err
}

// Revoke signs a browser out. The error is a *Problem with status 404 if no login has the id.
func (c Logins) Revoke(ctx context.Context, id string) (api.LoginRevoked, error) {
	return call[api.LoginRevoked](ctx, c.client, http.MethodDelete, "/logins/"+url.PathEscape(id), nil, nil)
}
