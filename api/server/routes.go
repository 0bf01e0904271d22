package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/fairlead-dev/fairlead/api"
)

// route is one thing that can be asked of the server.
type route struct {
	ID      string
	Method  string
	Path    string // after api.Base
	Summary string
	About   string
	add     adder
}

// adder puts a route on the counter.
type adder func(*Server, huma.API, huma.Operation)

// table is every route there is; the OpenAPI document and doc/api.md are made from it.
func table() []route {
	const get, post = http.MethodGet, http.MethodPost
	return slices.Concat([]route{
		{
			"list-agents", get, "/agents", "The team as it is now",
			"Every agent in the order of fairlead.yaml, with evidence asked for just now, and whether the team is held. `head` is the sequence as of which this is true: follow `/events?after=HEAD` from it.",
			answer((*Server).team),
		},
		{
			"explain-agent", get, "/agents/{name}", "One agent, and why it is shown as it is",
			"The evidence for and against its status, the verdict in a sentence, and its last sessions, newest first.",
			answer((*Server).why),
		},
		{
			"start-agent", post, "/agents/{name}/start", "Let an agent work, session after session",
			"Wants `continuous`. The answer comes when the order is durable; `/events` tells what follows from it.",
			order(orders[api.Start]),
		},
		{
			"stop-agent", post, "/agents/{name}/stop", "Let an agent rest after the session that runs",
			"Wants `pause`. Nothing is interrupted.",
			order(orders[api.Stop]),
		},
		{
			"run-agent-once", post, "/agents/{name}/once", "Let an agent do one session",
			"Wants `run_once`. While a session runs: one more after it.",
			order(orders[api.Once]),
		},
		{
			"run-agent-cleanup", post, "/agents/{name}/cleanup", "Let an agent do one cleanup session",
			"Wants `run_cleanup`.",
			order(orders[api.Cleanup]),
		},
		{
			"hold-team", post, "/hold", "Let nothing start",
			"No session begins until the team is released; what runs finishes. It survives a restart.",
			hold(true),
		},
		{
			"unhold-team", post, "/unhold", "Lift the hold",
			"Agents go on with what is wanted of them.",
			hold(false),
		},
		{
			"stream-events", get, "/events", "Follow the journal",
			"Server-sent events: `event: change` with a Change and its sequence as `id`, each change once and in order. A client that comes back with the last `id` it has misses nothing. Comments keep a silent line alive. `event: bye` says why a stream ends: `lagged` (ask again after your last `id`), `stopping`, `failed`. Status 410: the place lies beyond the end, this is another journal.",
			stream("text/event-stream", (*Server).events),
		},
		{
			"read-journal", get, "/journal", "Read the journal",
			"A page of changes in order. A page may be shorter than its limit where changes are big; the journal is read to its end when `changes` is empty or its last has the sequence `head`.",
			answer((*Server).journal),
		},
		{
			"read-output", get, "/sessions/{id}/output", "Read what a session said",
			"The bytes as the agent wrote them, from an offset on, as many as there are. `X-Fairlead-Offset` and `X-Fairlead-End` say which they are, `X-Fairlead-Open` whether more may come.",
			stream("application/octet-stream", (*Server).raw),
		},
		{
			"stream-output", get, "/sessions/{id}/output/stream", "Follow what a session says",
			"Server-sent events: `event: output` with an Output and the offset after it as `id`, at most 20 a second; `event: end` with an Ended when the session is over and all was told; `event: bye` as for `/events`. Characters are not torn; what is not UTF-8 is replaced; offsets count bytes.",
			stream("text/event-stream", (*Server).outputStream),
		},
		{
			"read-facts", get, "/sessions/{id}/facts", "What the driver understood of a session's output",
			"The newest last.",
			answer((*Server).facts),
		},
		{
			"list-machines", get, "/machines", "The state machines",
			"Their tables, which the rows in the journal name, and a diagram of each.",
			answer((*Server).machines),
		},
		{
			"get-status", get, "/status", "The daemon itself",
			"That it answers is also a sign that the team's loop is alive.",
			answer((*Server).status),
		},
		{
			"stop-team", post, "/down", "Stop Fairlead",
			"Sessions that run finish and nothing new begins; then the daemon goes. With `now` they are ended.",
			answer((*Server).down),
		},
	}, runRoutes(), channelRoutes(), memberRoutes(), crewRoutes(), dispatchRoutes(), questionRoutes())
}

// answer is a route that takes an In and gives an Out as JSON, or a problem.
func answer[In, Out any](do func(*Server, context.Context, *In) (*Out, error)) adder {
	return answerWithin(api.AnswerMax, do)
}

func answerWithin[In, Out any](most time.Duration, do func(*Server, context.Context, *In) (*Out, error)) adder {
	type reply struct{ Body Out }
	return func(s *Server, h huma.API, op huma.Operation) {
		huma.Register(h, op, func(ctx context.Context, in *In) (*reply, error) {
			ctx, cancel := context.WithTimeout(ctx, most)
			defer cancel()
			out, err := do(s, ctx, in)
			if err != nil {
				return nil, api.ProblemOf(err)
			}
			return &reply{Body: *out}, nil
		})
	}
}

// created is a route whose answer is something new.
func created(add adder) adder {
	return func(s *Server, h huma.API, op huma.Operation) {
		op.DefaultStatus = http.StatusCreated
		add(s, h, op)
	}
}

// stream is a route that writes by itself, as long as it likes.
func stream[In any](kind string, do func(*Server, http.ResponseWriter, *http.Request, *In)) adder {
	return func(s *Server, h huma.API, op huma.Operation) {
		op.Responses["200"] = &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{kind: {Schema: &huma.Schema{Type: huma.TypeString}}}}
		huma.Register(h, op, func(_ context.Context, in *In) (*huma.StreamResponse, error) {
			return &huma.StreamResponse{Body: func(hc huma.Context) {
				r, w := humago.Unwrap(hc)
				do(s, w, r, in)
			}}, nil
		})
	}
}

// routes makes the mux of all routes, and the OpenAPI document of it.
func (s *Server) routes() (*http.ServeMux, []byte) {
	mux := http.NewServeMux()
	h := humago.NewWithPrefix(mux, api.Base, s.huma())
	allowed := map[string][]string{}
	for _, rt := range table() {
		allowed[rt.Path] = append(allowed[rt.Path], rt.Method)
		schema := h.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[api.Problem](), true, "Problem")
		rt.add(s, h, huma.Operation{
			OperationID: rt.ID, Method: rt.Method, Path: rt.Path, Summary: rt.Summary, Description: rt.About,
			RejectUnknownQueryParameters: true,
			Responses: map[string]*huma.Response{
				"default": {Description: "A problem", Content: map[string]*huma.MediaType{api.ProblemType: {Schema: schema}}},
			},
		})
	}
	document := describe(h)
	mux.HandleFunc("GET "+api.Base+"/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		w.Write(document)
	})
	allowed["/openapi.json"] = []string{http.MethodGet}
	for _, path := range slices.Sorted(maps.Keys(allowed)) {
		mux.HandleFunc(api.Base+path, otherwise(allowed[path]))
	}
	for old, now := range renamed {
		mux.HandleFunc(api.Base+old, forward(mux, old, now))
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		api.NewProblem(http.StatusNotFound, "there is no %s; %s/openapi.json lists what there is", api.Shorten(r.URL.Path), api.Base).Write(w)
	})
	if s.ui != nil {
		mux.Handle("/", s.ui)
	} else {
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			api.NewProblem(http.StatusNotFound, "there is no page here; the API is below %s", api.Base).Write(w)
		})
	}
	return mux, document
}

// otherwise answers every method that a path does not take.
func otherwise(methods []string) http.HandlerFunc {
	allow := slices.Clone(methods)
	if slices.Contains(allow, http.MethodGet) {
		allow = append(allow, http.MethodHead)
	}
	allow = append(allow, http.MethodOptions)
	header := strings.Join(allow, ", ")
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", header)
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		api.NewProblem(http.StatusMethodNotAllowed, "%s does not take %s; it takes %s", api.Shorten(r.URL.Path), api.Shorten(r.Method), header).Write(w)
	}
}

func (s *Server) huma() huma.Config {
	const about = "What Mission Control and the command line can do, programs can do. Over TCP a token is sent as `Authorization: Bearer TOKEN`; over the unix socket the peer's user id is enough."
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info:    &huma.Info{Title: "Fairlead", Version: api.VersionOrZero(s.opts.Version), Description: about},
			Servers: []*huma.Server{{URL: api.Base}},
			Components: &huma.Components{
				Schemas:         huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
				SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}},
			},
			Security: []map[string][]string{{"token": {}}},
		},
		Formats: map[string]huma.Format{
			"application/json": {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: json.Unmarshal},
			"json":             {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: json.Unmarshal}, // application/problem+json
		},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{inOurWords},
	}
}

// orNull are fields that point to something that may not be there; huma does not see that.
var orNull = map[string][]string{"AgentView": {"session"}, "ChannelView": {"aside", "last"}, "Fact": {"usage"}}

// describe writes the OpenAPI document. The messages of the streams are added, since no
// route gives one as a whole. Answers may have more fields than they name: we add some with
// every version. What is asked may not, so that a typing error is found.
func describe(h huma.API) []byte {
	schemas := h.OpenAPI().Components.Schemas
	for _, t := range []reflect.Type{reflect.TypeFor[api.Change](), reflect.TypeFor[api.Output](), reflect.TypeFor[api.Ended](), reflect.TypeFor[api.Bye]()} {
		schemas.Schema(t, true, t.Name())
	}
	all := schemas.Map()
	delete(all, "ErrorModel") // huma's own; ours is Problem
	delete(all, "ErrorDetail")
	for name, schema := range all {
		if !strings.HasSuffix(name, "Body") {
			schema.AdditionalProperties = nil
		}
		for field, words := range explained[name] {
			if p := schema.Properties[field]; p != nil {
				p.Description = words
			}
		}
		for _, field := range orNull[name] {
			to := *schema.Properties[field]
			schema.Properties[field] = &huma.Schema{AnyOf: []*huma.Schema{{Ref: to.Ref}, {Type: "null"}}, Description: to.Description}
		}
	}
	document, err := json.MarshalIndent(h.OpenAPI(), "", "  ")
	if err != nil {
		panic(fmt.Sprintf("api: the OpenAPI document cannot be written: %v", err))
	}
	return append(document, '\n')
}

// OpenAPI is the OpenAPI 3.1 document of all routes, as /api/v1/openapi.json serves it.
func OpenAPI() ([]byte, error) {
	return New(Options{}).openapi, nil
}
