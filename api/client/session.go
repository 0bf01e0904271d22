package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/rank"
)

// Dispatches has the requests about dispatch folders.
type Dispatches struct{ client *Client }

// List returns the dispatches: the open ones first, then the newest.
func (c Dispatches) List(ctx context.Context) (api.DispatchSessions, error) {
	return get[api.DispatchSessions](ctx, c.client, "/dispatch", nil)
}

// Show returns one of them in full. For an unknown name the error is a *Problem with status 404
// and the known names.
func (c Dispatches) Show(ctx context.Context, name string) (api.DispatchView, error) {
	return get[api.DispatchView](ctx, c.client, sessionPath(name), nil)
}

// Conversation returns one input with its dialogue and files.
func (c Dispatches) Conversation(ctx context.Context, name string, n int) (api.DispatchTalk, error) {
	return get[api.DispatchTalk](ctx, c.client, talkPath(name, n), nil)
}

// OutputFile returns the beginning of an output file of a conversation: at most limit bytes, and
// never more than 64 MiB.
func (c Dispatches) OutputFile(ctx context.Context, name string, n int, file string, limit int64) ([]byte, error) {
	v := url.Values{}
	if limit > 0 {
		v.Set("limit", strconv.FormatInt(limit, 10))
	}
	resp, err := c.client.ask(ctx, http.MethodGet, talkPath(name, n)+"/outputs/"+url.PathEscape(file), v, nil, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, responseBytes))
	if err != nil {
		return nil, fmt.Errorf("read the output %s: %w", file, err)
	}
	return text, nil
}

// Start starts a dispatch (D1). Empty arguments mean the settings of fairlead.yaml. The error
// is a *Refused if the path exists.
func (c Dispatches) Start(ctx context.Context, mode, host, path string) (api.DispatchView, error) {
	return post[api.DispatchView](ctx, c.client, "/dispatch", api.DispatchStartBody{Mode: mode, Host: host, Path: path})
}

// Input gives a session an input (D2). It returns when the input is durable; the session's changes
// show which agent takes over.
func (c Dispatches) Input(ctx context.Context, name, text string) (api.DispatchTold, error) {
	return post[api.DispatchTold](ctx, c.client, sessionPath(name)+"/input", api.DispatchInputBody{Text: text})
}

// Delegate reports that MAIN put an agent in charge (D3). Only for sessions with host none.
func (c Dispatches) Delegate(ctx context.Context, name, agent, text string) (api.DispatchView, error) {
	return post[api.DispatchView](ctx, c.client, sessionPath(name)+"/delegate", api.DispatchDelegateBody{Agent: agent, Text: text})
}

// Done reports that the newest task is over (D4). Only for sessions with host none.
func (c Dispatches) Done(ctx context.Context, name string, ok bool, text string) (api.DispatchView, error) {
	return post[api.DispatchView](ctx, c.client, sessionPath(name)+"/done", api.DispatchDoneBody{Failed: !ok, Text: text})
}

// Respond reports that the user has the answer (D7). Only for sessions with host none.
func (c Dispatches) Respond(ctx context.Context, name, text string) (api.DispatchView, error) {
	return post[api.DispatchView](ctx, c.client, sessionPath(name)+"/respond", api.DispatchRespondBody{Text: text})
}

// End ends a dispatch (D10): its permissions are no longer enforced.
func (c Dispatches) End(ctx context.Context, name, note string) (api.DispatchView, error) {
	return post[api.DispatchView](ctx, c.client, sessionPath(name)+"/end", api.NoteBody{Note: note})
}

// PolicyCheck asks whether a state may make a tool call; an empty session means that none is open.
func (c Dispatches) PolicyCheck(ctx context.Context, state, tool string, input json.RawMessage, session string) (api.PolicyVerdict, error) {
	call := map[string]any{"state": state, "tool": tool, "input": input}
	if session != "" {
		call["session"] = session
	}
	return post[api.PolicyVerdict](ctx, c.client, "/policy/check", call)
}

// Route ranks every description for a text; an empty session means a session that starts now.
func (c Dispatches) Route(ctx context.Context, text, session string) (rank.Ranking, error) {
	return post[rank.Ranking](ctx, c.client, "/route", api.RouteBody{Text: text, Session: session})
}

func sessionPath(name string) string { return "/dispatch/" + url.PathEscape(name) }

func talkPath(name string, n int) string {
	return sessionPath(name) + "/conversations/" + strconv.Itoa(n)
}
