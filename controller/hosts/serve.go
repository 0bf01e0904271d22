package hosts

import (
	"context"
	"net/http"

	"github.com/fairlead-dev/fairlead/cluster/wire"
)

// Routes serves what hosts ask of their leader. hostOf names the host of a request by its certificate.
func (c *HostController) Routes(mux *http.ServeMux, hostOf func(context.Context) string) {
	serve(mux, wire.RenewRoute, hostOf, c.Renew)
	serve(mux, wire.GrantRoute, hostOf, c.Grant)
	serve(mux, wire.LeaveRoute, hostOf, func(ctx context.Context, name string, _ struct{}) (struct{}, error) {
		return struct{}{}, c.Leave(ctx, name)
	})
}

// serve answers one route with JSON.
func serve[In, Out any](mux *http.ServeMux, route string, hostOf func(context.Context) string, do func(context.Context, string, In) (Out, error)) {
	mux.HandleFunc("POST "+route, func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := wire.Read(r.Body, &in); err != nil {
			wire.Fail(w, err)
			return
		}
		out, err := do(r.Context(), hostOf(r.Context()), in)
		if err != nil {
			wire.Fail(w, err)
			return
		}
		wire.Answer(w, out)
	})
}
