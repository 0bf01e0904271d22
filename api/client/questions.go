package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/api"
)

// Questions has the requests about agents' questions that wait for a person, and saved answers.
type Questions struct{ client *Client }

// Show returns one question, also an answered one. The error is a *Problem with status 404 if it
// is not known, or no longer.
func (c Questions) Show(ctx context.Context, id string) (view.QuestionView, error) {
	return Get[view.QuestionView](ctx, c.client, "/questions/"+url.PathEscape(id), nil)
}

// Answer answers a question; it returns when the answer is durable. The error is a *Refused
// if the question no longer waits, or does not accept such an answer.
func (c Questions) Answer(ctx context.Context, id string, answer view.QuestionAnswer) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c.client, "/questions/"+url.PathEscape(id)+"/answer", api.AskedBody(answer))
}

// Saved returns the saved answers, oldest first.
func (c Questions) Saved(ctx context.Context) ([]view.StandingView, error) {
	all, err := Get[api.StandingAnswers](ctx, c.client, "/saved-answers", nil)
	return all.Standing, err
}

// Revoke revokes a saved answer.
func (c Questions) Revoke(ctx context.Context, id string) (api.Ordered, error) {
	return call[api.Ordered](ctx, c.client, http.MethodDelete, "/saved-answers/"+url.PathEscape(id), nil, nil)
}

// RetryAgent starts a rate-limited agent before its limit resets; for other agents it changes
// nothing. The error is a *Refused if the caller is an agent.
func (c *Client) RetryAgent(ctx context.Context, agent string) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c, agentPath(agent, "/retry"), api.EmptyBody{})
}

// EndAgentSession ends an agent's session; a second call ends it at once. The error is a *Refused if
// the agent has no session that this may end.
func (c *Client) EndAgentSession(ctx context.Context, agent string) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c, agentPath(agent, "/end"), api.EmptyBody{})
}

// Tell tells the agent of a running session something. The target is an agent, a session or a run.
func (c *Client) Tell(ctx context.Context, target, text string) (view.TellResult, error) {
	return Post[view.TellResult](ctx, c, agentPath(target, "/tell"), map[string]string{"text": text})
}

// Digest says what happened since a time; zero: since a person marked everything as seen.
func (c *Client) Digest(ctx context.Context, since time.Time) (view.Digest, error) {
	return Get[view.Digest](ctx, c, "/digest", queryOf(struct {
		Since time.Time `query:"since"`
	}{since}))
}

// Usage returns the usage by agent, day and run; archived includes archived runs.
func (c *Client) Usage(ctx context.Context, archived bool) (view.UsageTable, error) {
	return Get[view.UsageTable](ctx, c, "/usage", queryOf(struct {
		Archived bool `query:"archived"`
	}{archived}))
}
