package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/cluster/wire"
	"github.com/fairlead-dev/fairlead/controller/seam"
)

// hostKey is the key of the other host that passed a request on.
type hostKey struct{}

// callerBytesMax is more than two names of sessions in JSON.
const callerBytesMax = 4 << 10

// HostHandler serves the same routes as SocketHandler to programs on another host of the team, which has proven its
// name. The host says in a header who the caller is. It is believed only about the sessions that are placed on it:
// placedOn returns the host of a session, as the journal has it; empty: it is on none.
func (s *Server) HostHandler(host string, placedOn func(session string) string) http.Handler {
	next := s.headers(s.mcp(s.opts.MCP, entered(doorSocket, straight(s.whole(ours(dated(http.HandlerFunc(s.route))))))))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		is, err := callerOn(r)
		if err != nil {
			api.NewProblem(http.StatusBadRequest, "host %s does not say properly which program asks: %s; use the same version of Fairlead on both hosts", host, err).Write(w)
			return
		}
		is.Host = host
		if is.Session != "" && placedOn(is.Session) != host { // no host speaks for the sessions of another one
			is = seam.Caller{Unknown: true, Host: host}
		}
		r.Header.Del(wire.CallerField)
		ctx := context.WithValue(r.Context(), hostKey{}, host)
		next.ServeHTTP(w, r.WithContext(caller.WithIdentity(ctx, is)))
	})
}

// callerOn reads the header in which a host says who made a request.
func callerOn(r *http.Request) (is seam.Caller, err error) {
	fields := r.Header.Values(wire.CallerField)
	if len(fields) != 1 || len(fields[0]) > callerBytesMax || !strings.HasPrefix(fields[0], "{") {
		return is, &wire.Problem{Code: wire.BadRequest, Why: "it needs one header " + wire.CallerField + ", with an object of a limited length"}
	}
	var said wire.Caller
	err = wire.Read(strings.NewReader(fields[0]), &said)
	return seam.Caller{Session: said.Session, Foreign: said.Foreign, Unknown: said.Unknown, Seen: said.Seen}, err
}
