package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/fromhost"
	"github.com/fairlead-dev/fairlead/api/mcp"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

// hostKey is the key of the other host that passed a request on.
type hostKey struct{}

// HostHandler serves the same routes as SocketHandler to programs on another host of the team, which has proven its
// name. The host says in a header who the caller is. It is believed only about the sessions that are placed on it:
// placedOn returns the host of a session, as the journal has it; empty: it is on none. fromhost.Rules says which routes it may use. The
// tools for agents (mcp) are open to it: each call needs the token of an open session, which only its host got, or its own socket there.
func (s *Server) HostHandler(host string, placedOn func(session string) string) http.Handler {
	next := s.headers(s.mcp(s.opts.MCP, entered(entranceSocket, straight(s.whole(ours(dated(http.HandlerFunc(s.route))))))))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, api.Base+"/") && r.URL.Path != mcp.Path {
			api.NewProblem(http.StatusNotFound, "there is no %s for hosts; Mission Control is on the leader's machine",
				api.Shorten(r.URL.Path)).Write(w)
			return
		}
		is, err := fromhost.CallerOf(r)
		if err != nil {
			api.NewProblem(http.StatusBadRequest,
				"host %s does not say properly which program asks: %s; use the same version of Fairlead on both hosts", host, err).Write(w)
			return
		}
		is.Host = host
		if is.Session != "" && placedOn(is.Session) != host { // no host speaks for the sessions of another one
			is = caller.Identity{Unknown: true, Host: host}
		}
		r.Header.Del(wire.CallerField)
		ctx := context.WithValue(r.Context(), hostKey{}, host)
		next.ServeHTTP(w, r.WithContext(caller.WithIdentity(ctx, is)))
	})
}
