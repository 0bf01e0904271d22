package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/api"
)

// Questions are those of agents that wait for a person, the oldest first.
func (c *Client) Questions(ctx context.Context) ([]view.QuestionView, error) {
	all, err := get[api.Questions](ctx, c, "/questions", nil)
	return all.Questions, err
}

// Question is one of them, also one that was answered. The error is a *Problem with status 404 where
// it is not known, or not any more.
func (c *Client) Question(ctx context.Context, id string) (view.QuestionView, error) {
	return get[view.QuestionView](ctx, c, "/questions/"+url.PathEscape(id), nil)
}

// AnswerQuestion answers an agent; it returns when that is durable. The error is a *Refused where
// the question does not wait any more, or does not take such an answer.
func (c *Client) AnswerQuestion(ctx context.Context, id string, answer view.QuestionAnswer) (api.Ordered, error) {
	return post[api.Ordered](ctx, c, "/questions/"+url.PathEscape(id)+"/answer", api.AskedBody(answer))
}

// SavedAnswers returns the saved answers, oldest first.
func (c *Client) SavedAnswers(ctx context.Context) ([]view.StandingView, error) {
	all, err := get[api.StandingAnswers](ctx, c, "/saved-answers", nil)
	return all.Standing, err
}

// RevokeSavedAnswer revokes a saved answer.
func (c *Client) RevokeSavedAnswer(ctx context.Context, id string) (api.Ordered, error) {
	return call[api.Ordered](ctx, c, http.MethodDelete, "/saved-answers/"+url.PathEscape(id), nil, nil)
}

// RetryAgent has an agent that is rate limited be started again before its time; of one that is not,
// nothing changes. The error is a *Refused where an agent asks.
func (c *Client) RetryAgent(ctx context.Context, agent string) (api.Ordered, error) {
	return post[api.Ordered](ctx, c, agentPath(agent, "/retry"), api.EmptyBody{})
}

// EndAgentSession has the session end that an agent is at work in; asked again, at once. The error is a
// *Refused where none runs that this is for.
func (c *Client) EndAgentSession(ctx context.Context, agent string) (api.Ordered, error) {
	return post[api.Ordered](ctx, c, agentPath(agent, "/end"), api.EmptyBody{})
}

// Usage is what was used, by agent, by day and by run; with archived also by those runs that are archived.
func (c *Client) Usage(ctx context.Context, archived bool) (view.UsageTable, error) {
	query := url.Values{}
	if archived {
		query.Set("archived", "true")
	}
	return get[view.UsageTable](ctx, c, "/usage", query)
}
