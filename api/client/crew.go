package client

import (
	"context"
	"net/http"
	"net/url"

	crewctl "github.com/fairlead-dev/fairlead/controller/crew"

	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/api"
)

// Crew has the requests about the crew and its documents.
type Crew struct{ client *Client }

// Show returns the crew: its members and their status. all includes expired placeholders.
func (c Crew) Show(ctx context.Context, all bool) (view.CrewView, error) {
	return Get[view.CrewView](ctx, c.client, "/crew", queryOf(struct {
		All bool `query:"all"`
	}{all}))
}

// Summon summons a crew for the first time. It returns when the placeholders are durable. The error
// is a *Refused if the state does not allow it.
func (c Crew) Summon(ctx context.Context) (api.CrewOrdered, error) {
	return Post[api.CrewOrdered](ctx, c.client, "/crew/summon", api.EmptyBody{})
}

// Wake wakes members by id or name; an empty list means all that are not awake. It returns when the
// order is durable; the lead reports later which members are alive.
func (c Crew) Wake(ctx context.Context, agents []string) (api.CrewOrdered, error) {
	var who api.WakeBody
	for _, agent := range agents {
		who.Agents = append(who.Agents, api.AgentName(agent))
	}
	return Post[api.CrewOrdered](ctx, c.client, "/crew/wake", who)
}

// Sleep ends the lead's session, which sends all members to sleep.
func (c Crew) Sleep(ctx context.Context) (api.CrewOrdered, error) {
	return Post[api.CrewOrdered](ctx, c.client, "/crew/sleep", api.EmptyBody{})
}

// Document returns one member's document, by id or name. For an unknown name the error is a *Problem
// with status 404 and the known names; if two members have the name, it is a *Refused.
func (c Crew) Document(ctx context.Context, agent string) (view.DocumentView, error) {
	return Get[view.DocumentView](ctx, c.client, crewPath(agent), nil)
}

// Import imports a document's file from another device. The error is a *Problem with status
// 422 if it cannot be read, and a *Refused if no seat is free.
func (c Crew) Import(ctx context.Context, data []byte) (view.DocumentView, error) {
	return call[view.DocumentView](ctx, c.client, http.MethodPost, "/crew/import", nil, append([]byte{}, data...))
}

// Transcript returns a part of what was said, oldest first; limit 0 means the server's default.
func (c Crew) Transcript(ctx context.Context, q crewctl.TranscriptQuery) (crewctl.TranscriptPage, error) {
	return Get[crewctl.TranscriptPage](ctx, c.client, "/crew/transcript", queryOf(q))
}

func crewPath(agent string) string { return "/crew/agents/" + url.PathEscape(agent) }
