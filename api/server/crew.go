package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	crewctl "github.com/fairlead-dev/fairlead/controller/crew"
	"github.com/fairlead-dev/fairlead/controller/seam"

	"github.com/danielgtaylor/huma/v2"
	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/crewfile"
	"github.com/fairlead-dev/fairlead/view"
)

// CrewBackend is what the server asks about the team that a lead summons and wakes (SPEC
// Presence). Its errors are those of Backend; of what is no document an *crewctl.BadDocument.
type CrewBackend interface {
	Crew(ctx context.Context, all bool) (view.CrewView, error)
	Document(ctx context.Context, name string) (view.DocumentView, error) // by id, then by name
	Summon(ctx context.Context, by seam.Actor) (uint64, error)
	Wake(ctx context.Context, by seam.Actor, who []string) (uint64, error) // nobody named: all
	Sleep(ctx context.Context, by seam.Actor) (uint64, error)
	ImportDocument(ctx context.Context, by seam.Actor, data []byte) (view.DocumentView, error)
	Transcript(ctx context.Context, q crewctl.TranscriptQuery) (crewctl.TranscriptPage, error)
}

// documentBytesMax bounds a document that is imported, as it does one that is a file.
const documentBytesMax = crewfile.DocumentBytesMax

// importPath is the only route with a longer body than all others.
const importPath = "/crew/import"

type crewIn struct {
	All bool `query:"all" doc:"Also the expired: placeholders that never became anybody"`
}

type crewAgentIn struct {
	Agent string `path:"agent" maxLength:"64" pattern:"^[^\\x00-\\x1f\\x7f-\\x9f]+$" example:"agent-7" doc:"Its id, or its name where only one that is visible has it"`
}

type wakeIn struct {
	Body *api.WakeBody
}

type crewOrderIn struct {
	Body *api.EmptyBody
}

// documentBody is a document as it came; who reads it strictly is the engine.
type documentBody struct{ text json.RawMessage }

// UnmarshalJSON keeps the document as it is.
func (d *documentBody) UnmarshalJSON(b []byte) error {
	d.text = append(d.text[:0], b...)
	return nil
}

// Schema says that it is an object: its fields are the engine's to judge, and unknown ones are kept.
func (documentBody) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: true,
		Description: "The document, as `GET /crew/agents/{agent}` gives it and as it lies in `.fairlead/agents`; one without `status` is unknown (P12). 2 MiB at most",
	}
}

type importIn struct {
	Body documentBody
}

type transcriptIn struct {
	Speaker string `query:"speaker" maxLength:"64" pattern:"^[^\\x00-\\x1f\\x7f-\\x9f]+$" example:"Lyra" doc:"Only what this one said"`
	Session string `query:"session" maxLength:"134" pattern:"^[A-Za-z0-9_][A-Za-z0-9._@-]*$" doc:"Only in this session: lastSessionId of a document, or AGENT-NUMBER"`
	Text    string `query:"text" maxLength:"256" doc:"Only what has this in it, in capitals or not"`
	Before  uint64 `query:"before" maximum:"9007199254740991" doc:"The newest before this sequence; 0: no matter"`
	After   uint64 `query:"after" maximum:"9007199254740991" doc:"The oldest after this sequence; 0: no matter. With neither: the newest"`
	Limit   int    `query:"limit" default:"100" minimum:"1" maximum:"500" doc:"At most so many"`
}

// crewRoutes are the routes about the team that a lead summons and wakes.
func crewRoutes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{
			"get-crew", get, "/crew", "Who is there, and who is awake",
			"The documents by seat, what the lead's session is, and the one `button`: SUMMON, WAKE, WAKING… or none. `head` is the sequence as of which this is true: follow `/events?after=HEAD` for changes of machine `presence`. Unknown fields of a document are in `/crew/agents/{agent}` only.",
			answer((*Server).crew),
		},
		{
			"summon-crew", post, "/crew/summon", "Summon a team for the first time",
			"One placeholder hatches for each free seat, and the lead is told (P1). Refused where anybody is there already: `wake` is everything after. The answer comes when the placeholders are durable; who they become is the lead's to say.",
			orderCrew("summon", Backend.Summon),
		},
		{
			"wake-crew", post, "/crew/wake", "Wake who sleeps",
			"The lead is started if need be and asked who is awake; whoever is not gets soul and transcript back (P8). Nobody is alive before the lead has said so (P4).",
			answer((*Server).wakeCrew),
		},
		{
			"send-crew-to-sleep", post, "/crew/sleep", "End the lead's session",
			"Who was awake sleeps (P3). Nothing is lost.",
			orderCrew("sleep", Backend.Sleep),
		},
		{
			"get-document", get, "/crew/agents/{agent}", "One agent's document",
			"With exactly the fields of its file, unknown ones included, and its `id`.",
			answer((*Server).document),
		},
		{
			"read-soul", get, "/crew/agents/{agent}/soul", "One agent's soul",
			"`individuationArtifact` as plain text; empty where it has none yet.",
			stream("text/plain", (*Server).soul),
		},
		{
			"import-document", post, importPath, "Take in a document from another device",
			"Nobody becomes alive by it: that is the lead's to say (P13). Nobody is replaced by it: a seat that is taken is a refusal. Status 422 says what is wrong with a document that cannot be read.",
			created(importing(answer((*Server).importDocument))),
		},
		{
			"read-transcript", get, "/crew/transcript", "What was said, by whom, in which session",
			"In the lead's sessions and in channels, oldest first. A page may be shorter than its limit, and even empty, where texts are long or a search has read as much as one request may; `more` says whether there is more, and `next` from where: hand it back as `before`, or as `after` where that was asked.",
			answer((*Server).transcript),
		},
	}
}

// mayOrderCrew refuses what people order about the team to every agent (X10): nobody summons
// himself, and nobody wakes or sends to sleep whom he works with.
func mayOrderCrew(ctx context.Context, event string) error {
	c := callerIn(ctx)
	return c.because("people summon and wake a team; an agent says who is there in its own session, if it leads it", c.mayOrder(event, "the team", ""))
}

func (s *Server) crew(ctx context.Context, in *crewIn) (*view.CrewView, error) {
	view, err := s.engine.Crew(ctx, in.All)
	view = fitCrew(view)
	return &view, err
}

// afterCrew is the answer to an order that was carried out.
func (s *Server) afterCrew(ctx context.Context, seq uint64, err error) (*api.CrewOrdered, error) {
	if err != nil {
		return nil, err
	}
	view, err := s.engine.Crew(ctx, false)
	return &api.CrewOrdered{Seq: seq, Team: fitCrew(view)}, err
}

// orderCrew is a route that orders something of the whole team.
func orderCrew(event string, do func(Backend, context.Context, seam.Actor) (uint64, error)) adder {
	return answer(func(s *Server, ctx context.Context, _ *crewOrderIn) (*api.CrewOrdered, error) {
		if err := mayOrderCrew(ctx, event); err != nil {
			return nil, err
		}
		seq, err := do(s.engine, ctx, s.actor(ctx))
		return s.afterCrew(ctx, seq, err)
	})
}

func (s *Server) wakeCrew(ctx context.Context, in *wakeIn) (*api.CrewOrdered, error) {
	if err := mayOrderCrew(ctx, "wake"); err != nil {
		return nil, err
	}
	var who []string
	if in.Body != nil {
		for _, name := range in.Body.Agents {
			who = append(who, string(name))
		}
	}
	seq, err := s.engine.Wake(ctx, s.actor(ctx), who)
	return s.afterCrew(ctx, seq, err)
}

func (s *Server) document(ctx context.Context, in *crewAgentIn) (*view.DocumentView, error) {
	view, err := s.engine.Document(ctx, in.Agent)
	return &view, err
}

// soul gives an agent's soul as text that nobody runs: it is whatever the agent said.
func (s *Server) soul(w http.ResponseWriter, r *http.Request, in *crewAgentIn) {
	ctx, cancel := context.WithTimeout(r.Context(), api.AnswerMax)
	defer cancel()
	view, err := s.engine.Document(ctx, in.Agent)
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	body := strings.ToValidUTF8(view.Soul, "\uFFFD")
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+fileName(view.ID)+`.soul.txt"`)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.waits.answer)) // where it cannot be set, the server's own holds
	w.Write([]byte(body))
}

// fileName is an id as a header takes it, whatever it came from.
func fileName(id string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._-", r):
			return r
		}
		return '_'
	}, id)
}

func (s *Server) importDocument(ctx context.Context, in *importIn) (*view.DocumentView, error) {
	if err := mayOrderCrew(ctx, "import"); err != nil {
		return nil, err
	}
	view, err := s.engine.ImportDocument(ctx, s.actor(ctx), in.Body.text)
	var bad *crewctl.BadDocument
	if errors.As(err, &bad) {
		p := api.NewProblem(http.StatusUnprocessableEntity, "%s", bad)
		p.Errors = []api.Fault{{Message: api.Shorten(bad.Error()), Location: "body"}}
		return nil, p
	}
	return &view, err
}

// importing is a route that takes a whole document.
func importing(add adder) adder {
	return func(s *Server, h huma.API, op huma.Operation) {
		op.MaxBodyBytes = documentBytesMax + 1 // whose end is looked for; what is longer does not come here
		add(s, h, op)
	}
}

func (s *Server) transcript(ctx context.Context, in *transcriptIn) (*crewctl.TranscriptPage, error) {
	if in.Before > 0 && in.After > 0 {
		p := api.NewProblem(http.StatusUnprocessableEntity, "before and after name two places to read from; give one")
		p.Errors = []api.Fault{{Message: "not together with after", Location: "query.before", Value: in.Before}}
		return nil, p
	}
	page, err := s.engine.Transcript(ctx, crewctl.TranscriptQuery{
		Speaker: in.Speaker, Session: in.Session, Text: in.Text, Before: in.Before, After: in.After, Limit: in.Limit,
	})
	page = fitTranscript(page, in.After == 0)
	return &page, err
}
