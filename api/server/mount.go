package server

import (
	"context"
	"net"
	"net/http"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/mcp"
)

// mcp stands before everything else: its callers have tokens of their own, which open nothing else, and
// the token of the page is none here. What the doors ask of everybody they ask here, too.
func (s *Server) mcp(tools, next http.Handler) http.Handler {
	if tools == nil {
		tools = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			api.NewProblem(http.StatusNotFound, "this fairlead offers no tools to agents").Write(w)
		})
	}
	tools = s.whole(tools)
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != mcp.Path {
			next.ServeHTTP(w, r)
			return
		}
		if _, tcp := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); tcp {
			if !s.addressed(r) {
				sendAway(w)
				api.NewProblem(http.StatusMisdirectedRequest, "this is fairlead, and it is not called %q; use the address in FAIRLEAD_MCP_URL", api.Shorten(r.Host)).Write(w)
				return
			}
			if cross.Check(r) != nil || !fromHere(r) {
				sendAway(w)
				api.NewProblem(http.StatusForbidden, "a page of another site asked; only programs in sessions of fairlead may").Write(w)
				return
			}
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)() // a daemon that goes lets go of whoever waits
		tools.ServeHTTP(w, r.WithContext(mcp.WithSession(ctx, callerIn(ctx).session)))
	})
}
