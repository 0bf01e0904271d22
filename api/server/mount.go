package server

import (
	"context"
	"net"
	"net/http"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/mcp"
)

// mcp serves the tools for agents before all other routes. Its callers have tokens of their own,
// which are valid for nothing else; the page's token is not valid here. The host and origin checks
// apply here, too.
func (s *Server) mcp(tools, next http.Handler) http.Handler {
	if tools == nil {
		tools = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			api.NewProblem(http.StatusNotFound, "this fairlead server offers no tools to agents").Write(w)
		})
	}
	tools = s.whole(tools)
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != mcp.Path {
			next.ServeHTTP(w, r)
			return
		}
		_, tcp := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		if r.Context().Value(hostKey{}) == nil && tcp {
			if !namesHere(r, s.hosts) {
				sendAway(w)
				api.NewProblem(http.StatusMisdirectedRequest,
					"this fairlead server does not answer to the host name %q; use the address in FAIRLEAD_MCP_URL",
					api.Shorten(r.Host)).Write(w)
				return
			}
			if cross.Check(r) != nil || !fromOwnPage(r, "http://"+r.Host) {
				sendAway(w)
				api.NewProblem(http.StatusForbidden,
					"a page of another site sent this request; only programs in fairlead's sessions may do so").Write(w)
				return
			}
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)() // a daemon that stops ends waiting calls
		tools.ServeHTTP(w, r.WithContext(mcp.WithCaller(ctx, func() caller.Identity { return identity(ctx) })))
	})
}
