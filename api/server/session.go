package server

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/core/dispatch"
)

// Dispatch sessions with MAIN are not part of the controller's state: each one's folder holds its
// state, and every writer takes the folder's lock, like hooks and the command line. The daemon
// watches the folders and copies changes to the journal.

type dispatchConversationIn struct {
	DispatchPath
	N int `path:"n" minimum:"1" maximum:"999999999" example:"2" doc:"The conversation's number"`
}

type dispatchFileIn struct {
	DispatchPath
	N     int    `path:"n" minimum:"1" maximum:"999999999" example:"2" doc:"The conversation's number"`
	File  string `path:"file" maxLength:"1024" example:"hello_world.py" doc:"The file's name below outputs/; encode a slash as %2F"`
	Limit int64  `query:"limit" minimum:"0" doc:"The maximum number of bytes, from the beginning; 0: the whole file"`
}

// toolInput is a tool's arguments as received; package policy parses them strictly.
type toolInput struct{ text json.RawMessage }

// UnmarshalJSON keeps the text of the arguments unchanged.
func (t *toolInput) UnmarshalJSON(b []byte) error {
	t.text = append(t.text[:0], b...)
	return nil
}

// Schema describes an object with any fields.
func (toolInput) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: true,
		Description: "The tool's arguments, as the agent program passes them",
	}
}

// policyCheckBody is a tool call and its caller.
type policyCheckBody struct {
	State   string    `json:"state,omitempty" maxLength:"200" doc:"MAIN or an agent's name; default: MAIN"`
	Tool    string    `json:"tool" minLength:"1" maxLength:"200" example:"Bash" doc:"The tool's name in the agent program: Write, Edit, Bash, Read, mcp__SERVER__TOOL"`
	Input   toolInput `json:"input,omitempty"`
	Session string    `json:"session,omitempty" maxLength:"80" pattern:"^[A-Za-z0-9_.-]+$" doc:"The session whose outputs and named paths apply; default: as if none were open"`
}

// dispatchRoutes returns the routes about sessions in which MAIN coordinates.
func dispatchRoutes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{
			"list-dispatches", get, "/dispatch", "List the sessions in which MAIN coordinates",
			"Each is a folder. Changes are in `/events` as `dispatch/NAME`. They are not the sessions of one agent, AGENT-NUMBER, whose output is at `/sessions/{id}/output`.",
			answer(handleDispatchSessions),
		},
		{
			"start-dispatch", post, "/dispatch", "Start a session",
			"The session's files exist when the request returns (D1). An existing folder is refused.",
			created(answer(handleDispatchStart)),
		},
		{
			"get-dispatch", get, "/dispatch/{name}", "One session",
			"The state and its history, its permissions, denied calls and the delegations that followed, the ranking of the last input, waiting inputs, and the conversations.",
			answer(handleDispatchView),
		},
		{
			"get-conversation", get, "/dispatch/{name}/conversations/{n}", "One conversation",
			"Its dialogue as text, and the list of its outputs.",
			answer(handleDispatchConversation),
		},
		{
			"read-output-file", get, "/dispatch/{name}/conversations/{n}/outputs/{file}", "Read an output file of a conversation",
			"The bytes, always as an attachment. `X-Fairlead-Size` is the file's size.",
			stream("application/octet-stream", handleDispatchFile),
		},
		{
			"give-input", post, "/dispatch/{name}/input", "Give a session an input",
			"A new conversation begins (D2), and the agent whose description fits takes over at once (D3). If a conversation is open, the input waits.",
			answer(handleDispatchInput),
		},
		{
			"delegate-task", post, "/dispatch/{name}/delegate", "As MAIN: put an agent in charge",
			"Only for sessions that neither Claude Code nor Fairlead carries out: a person or a program reports what happens (D3).",
			tell("delegate", func(in *forDispatch[api.DispatchDelegateBody]) (string, dispatch.Input) {
				return in.Name, dispatch.Delegate{Agent: in.Body.Agent, Text: in.Body.Text}
			}),
		},
		{
			"finish-task", post, "/dispatch/{name}/done", "As an agent: report the newest task as done",
			"Only for sessions that neither Claude Code nor Fairlead carries out (D4, D5).",
			answer(handleDispatchDone),
		},
		{
			"give-answer", post, "/dispatch/{name}/respond", "As MAIN: report that the user has the answer",
			"The conversation is closed, and the next waiting input begins (D7). Only for sessions that neither Claude Code nor Fairlead carries out.",
			tell("respond", func(in *forDispatch[*api.DispatchRespondBody]) (string, dispatch.Input) {
				return in.Name, dispatch.Respond{Text: or(in.Body).Text}
			}),
		},
		{
			"end-dispatch", post, "/dispatch/{name}/end", "End a session",
			"Running work is cancelled, and permissions are no longer enforced (D10).",
			answer(handleDispatchEnd),
		},
		{
			"check-policy", post, "/policy/check", "Check whether a tool call is allowed",
			"The rules are those that hooks and drivers apply. Nothing is run or recorded.",
			answer(handlePolicyCheck),
		},
		{
			"rank-input", post, "/route", "Rank the agents for an input",
			"Compares every description with the text, with terms and scores; starts nothing.",
			answer(handleRank),
		},
	}
}
