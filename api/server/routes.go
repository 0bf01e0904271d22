package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/fromhost"
	"github.com/fairlead-dev/fairlead/internal/encode"
)

// route is one operation of the API.
type route struct {
	ID      string
	Method  string
	Path    string // after api.Base
	Summary string
	About   string
	add     adder
}

// adder registers a route.
type adder func(*Server, huma.API, huma.Operation)

// table returns all routes; the OpenAPI document and doc/api.md are made from it.
func routeTable() []route {
	const get, post = http.MethodGet, http.MethodPost
	return slices.Concat([]route{
		{
			"list-agents", get, "/agents", "Show the team",
			"All agents in the order of fairlead.yaml, with evidence collected for this request, and whether the team is held. The answer is the state at sequence `head`: follow `/events?after=HEAD` for changes.",
			asOf(answer(handleTeam)),
		},
		{
			"explain-agent", get, "/agents/{name}", "Show one agent and explain its status",
			"The evidence for and against the status, a one-sentence explanation, and the last sessions, newest first.",
			asOf(answer(handleWhy)),
		},
		{
			"start-agent", post, "/agents/{name}/start", "Run an agent continuously",
			"Sets the desired state `continuous`. The request returns when the order is durable; `/events` shows its effects.",
			order(orders[api.Start]),
		},
		{
			"stop-agent", post, "/agents/{name}/stop", "Stop an agent after its current session",
			"Sets the desired state `pause`. A running session is not interrupted.",
			order(orders[api.Stop]),
		},
		{
			"run-agent-once", post, "/agents/{name}/once", "Run one session of an agent",
			"Sets the desired state `run_once`. If a session runs, one more follows it.",
			order(orders[api.Once]),
		},
		{
			"run-agent-cleanup", post, "/agents/{name}/cleanup", "Run one cleanup session of an agent",
			"Wants `run_cleanup`.",
			order(orders[api.Cleanup]),
		},
		{
			"hold-team", post, "/hold", "Hold the team",
			"No session starts until the hold is lifted; running sessions finish. The hold survives a restart.",
			hold(true),
		},
		{
			"unhold-team", post, "/unhold", "Lift the hold",
			"Agents continue according to their desired states.",
			hold(false),
		},
		{
			"stream-events", get, "/events", "Follow the journal",
			"Server-sent events: `event: change` with a Change and its sequence as `id`, each change once and in order. A client that reconnects with the last `id` that it has misses no change. Comments keep an idle connection open. `event: bye` says why a stream ends: `stopping`, `failed`. Status 410: the sequence is after the end, so it belongs to another journal.",
			stream("text/event-stream", handleEvents),
		},
		{
			"read-journal", get, "/journal", "Read the journal",
			"A page of changes in order. A page can be shorter than its limit if changes are big. The end is reached when `changes` is empty or its last element has the sequence `head`.",
			asOf(answer(handleJournal)),
		},
		{
			"read-output", get, "/sessions/{id}/output", "Read a session's output",
			"The bytes that the agent wrote, from an offset up to the current end. `X-Fairlead-Offset` and `X-Fairlead-End` give their range, `X-Fairlead-Open` whether more may come.",
			stream("application/octet-stream", handleRaw),
		},
		{
			"stream-output", get, "/sessions/{id}/output/stream", "Follow a session's output",
			"Server-sent events: `event: output` with an Output and the offset after it as `id`, at most 20 a second; `event: end` with an Ended after the last output of a session that is over; `event: bye` as for `/events`. Characters are never split; invalid UTF-8 is replaced; offsets count bytes.",
			stream("text/event-stream", handleOutputStream),
		},
		{
			"read-facts", get, "/sessions/{id}/facts", "Read the facts of a session's output",
			"What the driver recognised in the output, the newest last. With `from`, what follows an offset.",
			answer(handleFacts),
		},
		{
			"list-machines", get, "/machines", "List the state machines",
			"The table of each machine, with the row ids that the journal uses, and a diagram.",
			answer(handleMachines),
		},
		{
			"get-status", get, "/status", "Show the daemon",
			"An answer also shows that the team's loop is running.",
			answer(handleStatus),
		},
		{
			"reload-config", post, "/reload", "Load fairlead.yaml again",
			"If the file has faults, the answer has status 422 and names them with their lines, and the daemon keeps its configuration. If something changed, the daemon restarts in its own process after the answer: open streams end with `stopping` and can be resumed, and running sessions keep working and are adopted.",
			answer(handleReload),
		},
		{
			"stop-team", post, "/down", "Stop Fairlead",
			"Running sessions finish, no session starts, and then the daemon stops. With `now` running sessions are ended.",
			answer(handleDown),
		},
	}, runRoutes(), taskRoutes(), reviewRoutes(), gitRoutes(), channelRoutes(), memberRoutes(), crewRoutes(), dispatchRoutes(),
		questionRoutes(), noticeRoutes(), searchRoutes(), digestRoutes(), configRoutes(), hostRoutes(), loginRoutes(), repositoryRoutes())
}

// answerBody carries an answer of any type, so that routes with the same input share one compiled huma.Register. Each pair of
// input and output types would need its own, which adds about 35 KB to the program.
type answerBody struct{ Body any }

// answer is a route that decodes an In and answers with an Out as JSON, or with a problem.
func answer[In, Out any](do func(context.Context, *Server, *In) (*Out, error)) adder {
	return answerWithin(api.AnswerMax, do)
}

func answerWithin[In, Out any](most time.Duration, do func(context.Context, *Server, *In) (*Out, error)) adder {
	return func(s *Server, h huma.API, op huma.Operation) {
		schema := h.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Out](), true, op.OperationID+"Response")
		status := strconv.Itoa(cmp.Or(op.DefaultStatus, http.StatusOK))
		op.Responses[status] = &huma.Response{Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
		huma.Register(h, op, func(ctx context.Context, in *In) (*answerBody, error) {
			ctx, cancel := context.WithTimeout(ctx, most)
			defer cancel()
			s, done, err := s.then(ctx, &op)
			if err != nil {
				return nil, api.ProblemOf(err)
			}
			defer done()
			out, err := do(ctx, s, in)
			if err != nil {
				return nil, api.ProblemOf(err)
			}
			return &answerBody{Body: *out}, nil
		})
	}
}

// created is a route whose answer has status 201.
func created(add adder) adder {
	return func(s *Server, h huma.API, op huma.Operation) {
		op.DefaultStatus = http.StatusCreated
		add(s, h, op)
	}
}

// stream is a route whose handler writes the answer, without a time limit.
func stream[In any](kind string, do func(*Server, http.ResponseWriter, *http.Request, *In)) adder {
	return func(s *Server, h huma.API, op huma.Operation) {
		op.Responses["200"] = &huma.Response{
			Description: "OK",
			Content:     map[string]*huma.MediaType{kind: {Schema: &huma.Schema{Type: huma.TypeString}}},
		}
		huma.Register(h, op, func(_ context.Context, in *In) (*huma.StreamResponse, error) {
			return &huma.StreamResponse{Body: func(hc huma.Context) {
				r, w := humago.Unwrap(hc)
				if _, _, err := s.then(r.Context(), &op); err != nil {
					api.ProblemOf(err).Write(w)
					return
				}
				do(s, w, r, in)
			}}, nil
		})
	}
}

// noLimit is the value with which huma lets a connection be read for any time.
const noLimit = -1

// routes returns the mux of all routes.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	allowed := map[string][]string{}
	for _, rt := range routeTable() {
		allowed[rt.Path] = append(allowed[rt.Path], rt.Method)
		mux.HandleFunc(rt.Method+" "+api.Base+rt.Path, fromhost.Only(rt.ID, handlerOf(s, rt)))
	}
	document := sync.OnceValue(func() []byte { return openAPI(s) })
	mux.HandleFunc("GET "+api.Base+"/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		w.Write(document())
	})
	allowed["/openapi.json"] = []string{http.MethodGet}
	for _, path := range slices.Sorted(maps.Keys(allowed)) {
		mux.HandleFunc(api.Base+path, otherwise(allowed[path]))
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		api.NewProblem(http.StatusNotFound, "there is no %s; %s/openapi.json lists all routes", api.Shorten(r.URL.Path), api.Base).Write(w)
	})
	if s.ui != nil {
		mux.Handle("/", s.ui)
	} else {
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			api.NewProblem(http.StatusNotFound, "there is no page here; the API is below %s", api.Base).Write(w)
		})
	}
	return mux
}

// handlerOf answers the requests of one route. What huma makes of the route's types is made for the first request: a
// command without a daemon asks for one route of a hundred, and all of them take longer than the rest of it.
func handlerOf(s *Server, rt route) http.HandlerFunc {
	made := sync.OnceValue(func() http.HandlerFunc {
		var one oneRoute
		h := humago.NewWithPrefix(&one, api.Base, s.huma())
		register(s, h, rt)
		strict(h.OpenAPI().Components.Schemas.Map())
		return one.handle
	})
	return func(w http.ResponseWriter, r *http.Request) { made()(w, r) }
}

// oneRoute takes the handler of one route from huma, in place of a mux.
type oneRoute struct{ handle http.HandlerFunc }

func (o *oneRoute) HandleFunc(_ string, handle func(http.ResponseWriter, *http.Request)) {
	o.handle = handle
}

func (o *oneRoute) ServeHTTP(w http.ResponseWriter, r *http.Request) { o.handle(w, r) }

// register adds a route to an API of huma.
func register(s *Server, h huma.API, rt route) {
	schema := h.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[api.Problem](), true, "Problem")
	rt.add(s, h, huma.Operation{
		OperationID: rt.ID, Method: rt.Method, Path: rt.Path, Summary: rt.Summary, Description: rt.About,
		RejectUnknownQueryParameters: true,
		BodyReadTimeout:              noLimit, // whole has read the body; a limit set later would end the requests on this connection
		Responses: map[string]*huma.Response{
			"default": {Description: "A problem", Content: map[string]*huma.MediaType{api.ProblemType: {Schema: schema}}},
		},
	})
}

// otherwise answers the methods that a path does not support.
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
		api.NewProblem(http.StatusMethodNotAllowed, "%s does not support %s; it supports %s", api.Shorten(r.URL.Path),
			api.Shorten(r.Method), header).Write(w)
	}
}

func (s *Server) huma() huma.Config {
	const about = "Mission Control and the command line are clients of this API. Over TCP, send the token as `Authorization: Bearer TOKEN`, where TOKEN is the content of `.fairlead/token` or the secret of a browser that is signed in; over the unix socket the peer's user id is enough."
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
			"application/json": {Marshal: writeJSON, Unmarshal: api.Unmarshal},
			"json":             {Marshal: writeJSON, Unmarshal: api.Unmarshal}, // application/problem+json
		},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{inOurWords},
	}
}

// writeJSON writes an answer; what a terminal obeys is escaped.
func writeJSON(w io.Writer, v any) error {
	var out bytes.Buffer
	if err := huma.DefaultJSONFormat.Marshal(&out, v); err != nil {
		return err //nolint:wrapcheck // huma reports it
	}
	_, err := w.Write(encode.Shown(out.Bytes()))
	return err //nolint:wrapcheck // huma reports it
}

// A field counts only in the letters of the contract. Otherwise a body could have one field in several spellings.
func init() { huma.ValidateStrictCasing = true } //nolint:gochecknoinits // huma has it as a variable of its package only

// orNull lists the fields that point to a value that may be missing; huma does not detect these.
var orNull = map[string][]string{"AgentView": {"session"}, "ChannelView": {"aside", "last"}}

// strict forbids what a request has too much, so that a misspelt field is reported. Answers may have additional fields:
// every version adds some.
func strict(schemas map[string]*huma.Schema) {
	for name, schema := range schemas {
		if !strings.HasSuffix(name, "Body") {
			schema.AdditionalProperties = nil
		}
	}
}

// openAPI writes the OpenAPI document. It adds the messages of the streams, because no route returns one as a whole.
func openAPI(s *Server) []byte {
	h := humago.NewWithPrefix(&oneRoute{}, api.Base, s.huma())
	for _, rt := range routeTable() {
		register(s, h, rt)
	}
	schemas := h.OpenAPI().Components.Schemas
	for _, t := range []reflect.Type{
		reflect.TypeFor[api.Change](), reflect.TypeFor[api.Output](), reflect.TypeFor[api.Ended](),
		reflect.TypeFor[api.Bye](),
	} {
		schemas.Schema(t, true, t.Name())
	}
	all := schemas.Map()
	delete(all, "ErrorModel") // huma's type; ours is Problem
	delete(all, "ErrorDetail")
	strict(all)
	for name, fields := range orNull {
		for _, field := range fields {
			to := *all[name].Properties[field]
			all[name].Properties[field] = &huma.Schema{AnyOf: []*huma.Schema{{Ref: to.Ref}, {Type: "null"}}, Description: to.Description}
		}
	}
	document, err := json.MarshalIndent(h.OpenAPI(), "", "  ")
	if err != nil {
		panic(fmt.Sprintf("api: the OpenAPI document cannot be written: %v", err))
	}
	return append(document, '\n')
}

// OpenAPI returns the OpenAPI 3.1 document of all routes, as /api/v1/openapi.json serves it.
func OpenAPI() []byte { return openAPI(New(Options{})) }
