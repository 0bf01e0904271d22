package server

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/view"
)

// Sessions with MAIN are no business of the engine's: the truth of each lies in its folder, and
// whoever has something to say to one takes the folder's lock, as hooks and the command line do.
// The daemon hears of it by watching, and tells everybody by the journal.

// FolderBackend is what the server asks the engine about them all the same: under which name the
// journal tells of each, and what it knows of those whose agents it runs.
type FolderBackend interface {
	Folders(ctx context.Context) ([]view.FolderView, error)
	Folder(ctx context.Context, name string) (view.FolderView, error) // a *team.Unknown where it was not taken in
}

type dispatchIn struct {
	Name string `path:"name" maxLength:"80" pattern:"^[A-Za-z0-9_.-]+$" example:"20261121_153005" doc:"The session"`
}

type dispatchTalkIn struct {
	Name string `path:"name" maxLength:"80" pattern:"^[A-Za-z0-9_.-]+$" example:"20261121_153005" doc:"The session"`
	N    int    `path:"n" minimum:"1" maximum:"999999999" example:"2" doc:"The conversation's number"`
}

type dispatchFileIn struct {
	Name  string `path:"name" maxLength:"80" pattern:"^[A-Za-z0-9_.-]+$" example:"20261121_153005" doc:"The session"`
	N     int    `path:"n" minimum:"1" maximum:"999999999" example:"2" doc:"The conversation's number"`
	File  string `path:"file" maxLength:"1024" example:"hello_world.py" doc:"Its name below outputs/; a slash in it is sent as %2F"`
	Limit int64  `query:"limit" minimum:"0" doc:"At most so many bytes of its beginning; 0: all of it"`
}

type dispatchStartIn struct{ Body *api.DispatchStartBody }

type dispatchInputIn struct {
	Name string `path:"name" maxLength:"80" pattern:"^[A-Za-z0-9_.-]+$" example:"20261121_153005" doc:"The session"`
	Body api.DispatchInputBody
}

type dispatchEndIn struct {
	Name string `path:"name" maxLength:"80" pattern:"^[A-Za-z0-9_.-]+$" example:"20261121_153005" doc:"The session"`
	Body *api.NoteBody
}

type dispatchDelegateIn struct {
	Name string `path:"name" maxLength:"80" pattern:"^[A-Za-z0-9_.-]+$" example:"20261121_153005" doc:"The session"`
	Body api.DispatchDelegateBody
}

type dispatchDoneIn struct {
	Name string `path:"name" maxLength:"80" pattern:"^[A-Za-z0-9_.-]+$" example:"20261121_153005" doc:"The session"`
	Body *api.DispatchDoneBody
}

type dispatchRespondIn struct {
	Name string `path:"name" maxLength:"80" pattern:"^[A-Za-z0-9_.-]+$" example:"20261121_153005" doc:"The session"`
	Body *api.DispatchRespondBody
}

// toolInput is a tool's arguments as they came; policy reads them strictly.
type toolInput struct{ text json.RawMessage }

// UnmarshalJSON keeps the arguments as they are.
func (t *toolInput) UnmarshalJSON(b []byte) error {
	t.text = append(t.text[:0], b...)
	return nil
}

// Schema says that it is an object whose fields are the tool's.
func (toolInput) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Description: "The tool's arguments, as its program gives them"}
}

// policyCheckBody is a tool call, and who would make it.
type policyCheckBody struct {
	State   string    `json:"state,omitempty" maxLength:"200" doc:"MAIN, or an agent's name; left out: MAIN"`
	Tool    string    `json:"tool" minLength:"1" maxLength:"200" example:"Bash" doc:"As its program calls it: Write, Edit, Bash, Read, mcp__SERVER__TOOL"`
	Input   toolInput `json:"input,omitempty"`
	Session string    `json:"session,omitempty" maxLength:"80" pattern:"^[A-Za-z0-9_.-]+$" doc:"Whose outputs and named paths count; left out: none is open"`
}

type policyCheckIn struct{ Body policyCheckBody }

type routeIn struct{ Body api.RouteBody }

// dispatchRoutes are the routes about sessions in which MAIN coordinates.
func dispatchRoutes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{
			"list-dispatches", get, "/dispatch", "Sessions in which MAIN coordinates",
			"Each is a folder. `/events` tells of changes as `dispatch/NAME`. They have nothing to do with the sessions of one agent, AGENT-NUMBER, of which `/sessions/{id}/output` tells.",
			answer((*Server).dispatchSessions),
		},
		{
			"start-dispatch", post, "/dispatch", "Begin a session",
			"Its files exist when the answer comes (D1). An existing folder is refused.",
			created(answer((*Server).dispatchStart)),
		},
		{
			"get-dispatch", get, "/dispatch/{name}", "One session",
			"Who is in charge and how that came, what that state may do, what was denied and what was done instead, the ranking of the last input, what waits, and the conversations.",
			answer((*Server).dispatchView),
		},
		{
			"get-conversation", get, "/dispatch/{name}/conversations/{n}", "One conversation",
			"With its dialogue as text, and the list of its outputs.",
			answer((*Server).dispatchTalk),
		},
		{
			"read-output-file", get, "/dispatch/{name}/conversations/{n}/outputs/{file}", "A file that a conversation made",
			"Its bytes, always as an attachment. `X-Fairlead-Size` says how many there are.",
			stream("application/octet-stream", (*Server).dispatchFile),
		},
		{
			"give-input", post, "/dispatch/{name}/input", "Say something to a session",
			"A conversation of its own begins (D2), and whoever's description fits takes over at once (D3); where one is open the input waits.",
			answer((*Server).dispatchInput),
		},
		{
			"delegate-task", post, "/dispatch/{name}/delegate", "As MAIN: put an agent in charge",
			"Of a session whose host is nobody of ours: a person or a program says what happens (D3).",
			tell("delegate", func(in *dispatchDelegateIn) (string, dispatch.Input) {
				return in.Name, dispatch.Delegate{Agent: in.Body.Agent, Text: in.Body.Text}
			}),
		},
		{
			"finish-task", post, "/dispatch/{name}/done", "As an agent: the task that began last is done",
			"Of a session whose host is nobody of ours (D4, D5).",
			answer((*Server).dispatchDone),
		},
		{
			"give-answer", post, "/dispatch/{name}/respond", "As MAIN: the user has the answer",
			"The conversation is closed, and the next input that waits begins (D7). Of a session whose host is nobody of ours.",
			tell("respond", func(in *dispatchRespondIn) (string, dispatch.Input) {
				var say dispatch.Respond
				if in.Body != nil {
					say.Text = in.Body.Text
				}
				return in.Name, say
			}),
		},
		{
			"end-dispatch", post, "/dispatch/{name}/end", "End a session",
			"Whoever is at work is cancelled, and nothing is enforced any more (D10).",
			answer((*Server).dispatchEnd),
		},
		{
			"check-policy", post, "/policy/check", "Would this tool call be allowed?",
			"Nothing is run, and nothing is recorded: the same rules that hooks and drivers ask.",
			answer((*Server).policyCheck),
		},
		{
			"rank-input", post, "/route", "Whose work would this be?",
			"Every description held against the text, with the terms and scores; nothing begins.",
			answer((*Server).rank),
		},
	}
}

// mayOrderSession refuses what people say to sessions to every agent (X10): it would release
// itself from what it may not do.
func mayOrderSession(ctx context.Context, event, subject string) error {
	c := callerIn(ctx)
	return c.because("people begin and end sessions, and speak in them; an agent says its own in its own session", c.mayOrder(event, subject, ""))
}
