package server

import (
	"context"
	"net/http"
	"net/url"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/internal/lazy"
)

// renamed maps the former path of a route to its present path. Former paths work for one more
// release. The OpenAPI document does not list them.
var renamed = map[string]string{
	"/agents/{name}/errands":             "/agents/{name}/actions",
	"/agents/{name}/told":                "/agents/{name}/actions/done",
	"/release":                           "/unhold",
	"/team":                              "/crew",
	"/team/summon":                       "/crew/summon",
	"/team/wake":                         "/crew/wake",
	"/team/sleep":                        "/crew/sleep",
	"/team/import":                       importPath,
	"/team/agents/{agent}":               "/crew/agents/{agent}",
	"/team/agents/{agent}/soul":          "/crew/agents/{agent}/soul",
	"/transcripts":                       "/crew/transcript",
	"/standing":                          "/saved-answers",
	"/standing/{id}":                     "/saved-answers/{id}",
	"/sessions":                          "/dispatch",
	"/sessions/{name}":                   "/dispatch/{name}",
	"/sessions/{name}/input":             "/dispatch/{name}/input",
	"/sessions/{name}/delegate":          "/dispatch/{name}/delegate",
	"/sessions/{name}/done":              "/dispatch/{name}/done",
	"/sessions/{name}/respond":           "/dispatch/{name}/respond",
	"/sessions/{name}/end":               "/dispatch/{name}/end",
	"/sessions/{name}/conversations/{n}": "/dispatch/{name}/conversations/{n}",
	"/sessions/{name}/conversations/{n}/outputs/{file}": "/dispatch/{name}/conversations/{n}/outputs/{file}",
}

// deprecatedSince is the value of the Deprecation header (RFC 9745): 2026-11-23 00:00 UTC.
const deprecatedSince = "@1795392000"

var pathVariable = lazy.Regexp(`\{(\w+)\}`)

// formerKey marks the context of a request that came to a former path; the value is that path.
type formerKey struct{}

// forward serves a request for a former path at its present path. The headers Deprecation and
// Link of the answer say that the path has changed.
func forward(mux *http.ServeMux, old, now string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		escaped := api.Base + pathVariable().ReplaceAllStringFunc(now, func(v string) string {
			return url.PathEscape(r.PathValue(v[1 : len(v)-1]))
		})
		path, err := url.PathUnescape(escaped)
		if err != nil {
			api.NewProblem(http.StatusBadRequest, "the path cannot be read: %s", err).Write(w)
			return
		}
		w.Header().Set("Deprecation", deprecatedSince)
		w.Header().Set("Link", "<"+escaped+`>; rel="successor-version"`)
		again := r.Clone(context.WithValue(r.Context(), formerKey{}, old))
		again.URL.Path, again.URL.RawPath = path, escaped
		mux.ServeHTTP(w, again)
	}
}
