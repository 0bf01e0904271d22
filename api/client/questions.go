package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/api"
)

// Questions returns agents' questions that wait for a person, oldest first.
func (c *Client) Questions(ctx context.Context) ([]view.QuestionView, error) {
	all, err := get[api.Questions](ctx, c, "/questions", nil)
	return all.Questions, err
}

// Question returns one question, also an answered one. The error is a *Problem with status 404 if it
// is not known, or no longer.
func (c *Client) Question(ctx context.Context, id string) (view.QuestionView, error) {
	return get[view.QuestionView](ctx, c, "/questions/"+url.PathEscape(id), nil)
}

// AnswerQuestion answers a question; it returns when the answer is durable. The error is a *Refused
// if the question no longer waits, or does not accept such an answer.
func (c *Client) AnswerQuestion(ctx context.Context, id string, answer view.QuestionAnswer) (api.Ordered, error) {
	return post[api.Ordered](ctx, c, "/questions/"+url.PathEscape(id)+"/answer", api.AskedBody(answer))
}

// Standing returns the saved answers, oldest first.
func (c *Client) SavedAnswers(ctx context.Context) ([]view.StandingView, error) {
	all, err := get[api.StandingAnswers](ctx, c, "/saved-answers", nil)
	return all.Standing, err
}

// RevokeStanding revokes a saved answer.
func (c *Client) RevokeSavedAnswer(ctx context.Context, id string) (api.Ordered, error) {
	return call[api.Ordered](ctx, c, http.MethodDelete, "/saved-answers/"+url.PathEscape(id), nil, nil)
}

// RetryAgent starts a rate-limited agent before its limit resets; for other agents it changes
// nothing. The error is a *Refused if the caller is an agent.
func (c *Client) RetryAgent(ctx context.Context, agent string) (api.Ordered, error) {
	return post[api.Ordered](ctx, c, agentPath(agent, "/retry"), api.EmptyBody{})
}

// EndAgentSession ends an agent's session; a second call ends it at once. The error is a *Refused if
// the agent has no session that this may end.
func (c *Client) EndAgentSession(ctx context.Context, agent string) (api.Ordered, error) {
	return post[api.Ordered](ctx, c, agentPath(agent, "/end"), api.EmptyBody{})
}

// Usage returns the usage by agent, day and run; archived includes archived runs.
func (c *Client) Usage(ctx context.Context, archived bool) (view.UsageTable, error) {
	query := url.Values{}
	if archived {
		query.Set("archived", "true")
	}
	return get[view.UsageTable](ctx, c, "/usage", query)
}
