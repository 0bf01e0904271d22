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
	"github.com/fairlead-dev/fairlead/policy"
)

// Dispatches returns all dispatch folders: the open ones first, then the newest.
func (c *Client) Dispatches(ctx context.Context) (api.DispatchSessions, error) {
	return get[api.DispatchSessions](ctx, c, "/dispatch", nil)
}

// Dispatch returns one dispatch in full. If there is none of that name, the error is a *Problem with
// status 404 and the known names.
func (c *Client) Dispatch(ctx context.Context, name string) (api.DispatchView, error) {
	return get[api.DispatchView](ctx, c, sessionPath(name), nil)
}

// Conversation is one input with what was said and made.
func (c *Client) Conversation(ctx context.Context, name string, n int) (api.DispatchTalk, error) {
	return get[api.DispatchTalk](ctx, c, talkPath(name, n), nil)
}

// OutputFile gives the beginning of a file that a conversation made: at most limit bytes of it, and
// never more than 64 MiB.
func (c *Client) OutputFile(ctx context.Context, name string, n int, file string, limit int64) ([]byte, error) {
	v := url.Values{}
	if limit > 0 {
		v.Set("limit", strconv.FormatInt(limit, 10))
	}
	resp, err := c.ask(ctx, http.MethodGet, talkPath(name, n)+"/outputs/"+url.PathEscape(file), v, nil, nil)
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

// StartDispatch starts a dispatch (D1). An empty argument takes the value of fairlead.yaml. If the
// path exists already, the error is a *Refused.
func (c *Client) StartDispatch(ctx context.Context, mode, host, path string) (api.DispatchView, error) {
	return post[api.DispatchView](ctx, c, "/dispatch", api.DispatchStartBody{Mode: mode, Host: host, Path: path})
}

// Input says something to a session (D2). It returns when that is durable; who does the work then,
// the session's changes say.
func (c *Client) Input(ctx context.Context, name, text string) (api.DispatchTold, error) {
	return post[api.DispatchTold](ctx, c, sessionPath(name)+"/input", api.DispatchInputBody{Text: text})
}

// Delegate says that MAIN put an agent in charge (D3), in a session whose host is nobody of ours.
func (c *Client) Delegate(ctx context.Context, name, agent, text string) (api.DispatchView, error) {
	return post[api.DispatchView](ctx, c, sessionPath(name)+"/delegate", api.DispatchDelegateBody{Agent: agent, Text: text})
}

// Done says that the task which began last is over (D4), in such a session.
func (c *Client) Done(ctx context.Context, name string, ok bool, text string) (api.DispatchView, error) {
	return post[api.DispatchView](ctx, c, sessionPath(name)+"/done", api.DispatchDoneBody{Failed: !ok, Text: text})
}

// Respond says that the user has the answer (D7), in such a session.
func (c *Client) Respond(ctx context.Context, name, text string) (api.DispatchView, error) {
	return post[api.DispatchView](ctx, c, sessionPath(name)+"/respond", api.DispatchRespondBody{Text: text})
}

// EndDispatch ends a dispatch (D10). Its rules are not enforced afterwards.
func (c *Client) EndDispatch(ctx context.Context, name, note string) (api.DispatchView, error) {
	return post[api.DispatchView](ctx, c, sessionPath(name)+"/end", api.NoteBody{Note: note})
}

// PolicyCheck asks whether a state may make a tool call; session empty: none is open.
func (c *Client) PolicyCheck(ctx context.Context, state, tool string, input json.RawMessage, session string) (api.PolicyVerdict, error) {
	call := map[string]any{"state": state, "tool": tool, "input": input}
	if session != "" {
		call["session"] = session
	}
	return post[api.PolicyVerdict](ctx, c, "/policy/check", call)
}

// Route ranks every description against a text; session empty: those that one would begin with now.
func (c *Client) Route(ctx context.Context, text, session string) (policy.Ranking, error) {
	return post[policy.Ranking](ctx, c, "/route", api.RouteBody{Text: text, Session: session})
}

func sessionPath(name string) string { return "/dispatch/" + url.PathEscape(name) }

func talkPath(name string, n int) string {
	return sessionPath(name) + "/conversations/" + strconv.Itoa(n)
}
