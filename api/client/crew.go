package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	crewctl "github.com/fairlead-dev/fairlead/controller/crew"

	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/api"
)

// Crew is the team that the lead summons and wakes: who is there, and who is awake. all shows
// expired placeholders too.
func (c *Client) Crew(ctx context.Context, all bool) (view.CrewView, error) {
	v := url.Values{}
	if all {
		v.Set("all", "true")
	}
	return get[view.CrewView](ctx, c, "/crew", v)
}

// Summon summons a team for the first time. It returns when the placeholders are durable. The
// error is a *Refused where the state does not allow it.
func (c *Client) Summon(ctx context.Context) (api.CrewOrdered, error) {
	return post[api.CrewOrdered](ctx, c, "/crew/summon", api.EmptyBody{})
}

// Wake wakes agents by id or name; nobody named: everybody who is not awake. It returns when the
// order is durable; who is alive then, the lead says later.
func (c *Client) Wake(ctx context.Context, agents []string) (api.CrewOrdered, error) {
	var who api.WakeBody
	for _, agent := range agents {
		who.Agents = append(who.Agents, api.AgentName(agent))
	}
	return post[api.CrewOrdered](ctx, c, "/crew/wake", who)
}

// Sleep ends the lead's session, and with it the team's day.
func (c *Client) Sleep(ctx context.Context) (api.CrewOrdered, error) {
	return post[api.CrewOrdered](ctx, c, "/crew/sleep", api.EmptyBody{})
}

// Document is one agent's document, by its id or its name. The error is a *Problem with status
// 404 and the names that there are where there is none, and a *Refused where two have the name.
func (c *Client) Document(ctx context.Context, agent string) (view.DocumentView, error) {
	return get[view.DocumentView](ctx, c, crewPath(agent), nil)
}

// Soul is what an agent said when it became somebody; empty where it is nobody yet.
func (c *Client) Soul(ctx context.Context, agent string) (string, error) {
	resp, err := c.ask(ctx, http.MethodGet, crewPath(agent)+"/soul", nil, nil, nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, responseBytes))
	if err != nil {
		return "", fmt.Errorf("read the soul of %s: %w", agent, err)
	}
	return string(text), nil
}

// ImportDocument takes in a document from elsewhere, as it lies in a file. The error is a
// *Problem with status 422 where it cannot be read, and a *Refused where there is no place for it.
func (c *Client) ImportDocument(ctx context.Context, data []byte) (view.DocumentView, error) {
	return call[view.DocumentView](ctx, c, http.MethodPost, "/crew/import", nil, append([]byte{}, data...))
}

// Transcript is a part of what was said, the oldest first; limit 0 takes the server's.
func (c *Client) Transcript(ctx context.Context, q crewctl.TranscriptQuery) (crewctl.TranscriptPage, error) {
	v := url.Values{}
	for key, seq := range map[string]uint64{"before": q.Before, "after": q.After, "limit": uint64(max(0, q.Limit))} {
		if seq > 0 {
			v.Set(key, strconv.FormatUint(seq, 10))
		}
	}
	for key, words := range map[string]string{"speaker": q.Speaker, "session": q.Session, "text": q.Text} {
		if words != "" {
			v.Set(key, words)
		}
	}
	return get[crewctl.TranscriptPage](ctx, c, "/crew/transcript", v)
}

func crewPath(agent string) string { return "/crew/agents/" + url.PathEscape(agent) }
