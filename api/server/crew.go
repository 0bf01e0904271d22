package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	crewctl "github.com/fairlead-dev/fairlead/work/crew"

	"github.com/danielgtaylor/huma/v2"
	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/files/crewdocs"
	"github.com/fairlead-dev/fairlead/read/view"
)

// documentBytesMax bounds an imported document; the limit for document files is the same.
const documentBytesMax = crewdocs.DocumentBytesMax

// importPath is the only route that accepts a longer body than the others.
const importPath = "/crew/import"

type crewIn struct {
	All bool `query:"all" doc:"Also expired documents: placeholders that never became an agent"`
}

type crewAgentIn struct {
	Agent string `path:"agent" maxLength:"64" pattern:"^[^\\x00-\\x1f\\x7f-\\x9f]+$" example:"agent-7" doc:"Its id, or its name if only one visible document has that name"`
}

// documentBody is a document as received. The controller validates it.
type documentBody struct{ text json.RawMessage }

// UnmarshalJSON keeps the text of the document unchanged.
func (d *documentBody) UnmarshalJSON(b []byte) error {
	d.text = append(d.text[:0], b...)
	return nil
}

// Schema describes an object with any fields: the controller checks them, and unknown fields are
// kept.
func (documentBody) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: true,
		Description: "The document, as `GET /crew/agents/{agent}` gives it and as it is stored in `.fairlead/agents`; without `status`, its status is unknown (P12). At most 2 MiB",
	}
}

// crewRoutes returns the routes about the crew: the lead and its members.
func crewRoutes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{
			"get-crew", get, "/crew", "Show the crew and its status",
			"The documents by seat, the state of the lead's session, and the one `button`: SUMMON, WAKE, WAKING… or none. The answer is the state at sequence `head`: follow `/events?after=HEAD` for changes of machine `crew`. Unknown fields of a document are in `/crew/agents/{agent}` only.",
			asOf(answer(handleCrew)),
		},
		{
			"summon-crew", post, "/crew/summon", "Summon a crew for the first time",
			"Fairlead makes one placeholder for each free seat and notifies the lead (P1). Refused if the crew has members already: use `wake` then. The request returns when the placeholders are durable; the lead's session decides what they become.",
			orderCrew("summon", func(e *app.App) crewOrder { return e.Crew.Summon }),
		},
		{
			"wake-crew", post, "/crew/wake", "Wake the crew",
			"Fairlead starts the lead if necessary and asks it which members are awake; the others get their soul and transcript back (P8). A member is alive only after the lead has said so (P4).",
			answer(handleWakeCrew),
		},
		{
			"send-crew-to-sleep", post, "/crew/sleep", "End the lead's session",
			"Members that were awake are asleep afterwards (P3). No document is lost.",
			orderCrew("sleep", func(e *app.App) crewOrder { return e.Crew.Sleep }),
		},
		{
			"get-document", get, "/crew/agents/{agent}", "One agent's document",
			"Exactly the fields of its file, including unknown ones, and its `id`.",
			asOf(answer(handleDocument)),
		},
		{
			"read-soul", get, "/crew/agents/{agent}/soul", "One agent's soul",
			"`individuationArtifact` as plain text; empty if the agent has none yet.",
			stream("text/plain", handleSoul),
		},
		{
			"import-document", post, importPath, "Import a document from another device",
			"An import makes no member alive: only the lead can say so (P13). It replaces no member: a seat that is taken is a refusal. Status 422 explains why a document cannot be read.",
			created(importing(answer(handleImportDocument))),
		},
		{
			"read-transcript", get, "/crew/transcript", "Read what was said, with speaker and session",
			"Messages of the lead's sessions and of channels, oldest first. A page can be shorter than its limit, even empty, if texts are long or a search has reached the limit of one request. `more` says whether messages are left, and `next` where they begin: pass it as `before`, or as `after` if the request used `after`.",
			asOf(answer(handleTranscript)),
		},
	}
}

func handleCrew(ctx context.Context, s *Server, in *crewIn) (*view.CrewView, error) {
	view, err := s.engine.Crew.Crew(ctx, in.All)
	view = fitCrew(view)
	return &view, err
}

// afterCrew is the answer to an order that was carried out.
func (s *Server) afterCrew(ctx context.Context, seq uint64, err error) (*api.CrewOrdered, error) {
	if err != nil {
		return nil, err
	}
	view, err := s.engine.Crew.Crew(ctx, false)
	return &api.CrewOrdered{Seq: seq, Team: fitCrew(view)}, err
}

type crewOrder = func(ctx context.Context, by change.Actor) (uint64, error)

// orderCrew is a route for an order to the whole crew.
func orderCrew(event string, order func(*app.App) crewOrder) adder {
	return answer(func(ctx context.Context, s *Server, _ *only[*api.EmptyBody]) (*api.CrewOrdered, error) {
		if err := identity(ctx).MayOrderCrew(event); err != nil {
			return nil, err
		}
		seq, err := order(s.engine)(ctx, s.actor(ctx))
		return s.afterCrew(ctx, seq, err)
	})
}

func handleWakeCrew(ctx context.Context, s *Server, in *only[*api.WakeBody]) (*api.CrewOrdered, error) {
	if err := identity(ctx).MayOrderCrew("wake"); err != nil {
		return nil, err
	}
	var who []string
	for _, name := range or(in.Body).Agents {
		who = append(who, string(name))
	}
	seq, err := s.engine.Crew.Wake(ctx, s.actor(ctx), who)
	return s.afterCrew(ctx, seq, err)
}

func handleDocument(ctx context.Context, s *Server, in *crewAgentIn) (*view.DocumentView, error) {
	view, err := s.engine.Crew.Document(ctx, in.Agent)
	return &view, err
}

// handleSoul returns an agent's soul as text/plain: its content is whatever the agent wrote and must never
// be executed by a browser.
func handleSoul(s *Server, w http.ResponseWriter, r *http.Request, in *crewAgentIn) {
	ctx, cancel := context.WithTimeout(r.Context(), api.AnswerMax)
	defer cancel()
	view, err := s.engine.Crew.Document(ctx, in.Agent)
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	body := strings.ToValidUTF8(view.Soul, "\uFFFD")
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+fileName(view.ID)+`.soul.txt"`)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	// if it cannot be set, the server's own limit applies
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.waits.answer))
	w.Write([]byte(body))
}

// fileName makes an id safe for a header.
func fileName(id string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._-", r):
			return r
		}
		return '_'
	}, id)
}

func handleImportDocument(ctx context.Context, s *Server, in *only[documentBody]) (*view.DocumentView, error) {
	if err := identity(ctx).MayOrderCrew("import"); err != nil {
		return nil, err
	}
	view, err := s.engine.Crew.ImportDocument(ctx, s.actor(ctx), in.Body.text)
	if bad, ok := errors.AsType[*crewctl.BadDocument](err); ok {
		p := api.NewProblem(http.StatusUnprocessableEntity, "%s", bad)
		p.Errors = []api.Fault{{Message: api.Shorten(bad.Error()), Location: "body"}}
		return nil, p
	}
	return &view, err
}

// importing is a route that accepts a whole document as its body.
func importing(add adder) adder {
	return func(s *Server, h huma.API, op huma.Operation) {
		op.MaxBodyBytes = documentBytesMax + 1 // one byte more than the limit, so that a longer body is detected
		add(s, h, op)
	}
}

func handleTranscript(ctx context.Context, s *Server, in *crewctl.TranscriptQuery) (*crewctl.TranscriptPage, error) {
	if err := oneStart(in.Before, in.After); err != nil {
		return nil, err
	}
	page, err := s.engine.Crew.Transcript(ctx, *in)
	page = fitTranscript(page, in.After == 0)
	return &page, err
}
