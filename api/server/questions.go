package server

import (
	"context"
	"net/http"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/api"
)

// QuestionBackend is what the server asks about questions of agents: permissions, questions in
// words, conversations that would go on under other conditions. Its errors are those of Backend.
type QuestionBackend interface {
	Questions(ctx context.Context) ([]view.QuestionView, error) // those that wait for a person, the oldest first
	QuestionByID(ctx context.Context, id string) (view.QuestionView, error)
	AnswerQuestion(ctx context.Context, by seam.Actor, id string, answer view.QuestionAnswer) (uint64, error)
	Standing(ctx context.Context) ([]view.StandingView, error)
	RevokeStanding(ctx context.Context, by seam.Actor, id string) (uint64, error)
	Usage(ctx context.Context, archived bool) (view.UsageTable, error)
	LiftLimit(ctx context.Context, by seam.Actor, agent string) (uint64, error)
}

type questionIn struct {
	ID string `path:"id" maxLength:"24" pattern:"^q[0-9]{1,20}$" example:"q17" doc:"The question"`
}

type answerQuestionIn struct {
	ID   string        `path:"id" maxLength:"24" pattern:"^q[0-9]{1,20}$" example:"q17" doc:"The question"`
	Body api.AskedBody // never left out: an answer without words must not be a no
}

type standingIn struct {
	ID string `path:"id" maxLength:"24" pattern:"^s[0-9]{1,20}$" example:"s3" doc:"The answer that stands"`
}

// questionRoutes are the routes about what agents ask, and about what they used.
func questionRoutes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{
			"list-questions", get, "/questions", "What agents ask",
			"Those that wait for a person, the oldest first. They are in `/inbox`, too, beside the steps that wait. `/events` tells of them as `question/ID`.",
			answer((*Server).questions),
		},
		{
			"get-question", get, "/questions/{id}", "One question of an agent",
			"Also one that was answered or taken back, as long as it is known: the last 200 of them; the journal has all.",
			answer((*Server).question),
		},
		{
			"answer-question", post, "/questions/{id}/answer", "Answer what an agent asks",
			"Of a permission `allow` is the answer; of the other kinds `option`, or `text` where words are taken. With `scope` the answer stands for calls exactly like this one: `session` until the agent's session ends, `always` until it is revoked. The answer comes when it is durable; whoever asked is told after that. No agent may answer (X10).",
			answer((*Server).answerQuestion),
		},
		{
			"list-saved-answers", get, "/saved-answers", "The answers that stand",
			"They answer the next questions like theirs without anybody being asked. The oldest first.",
			answer((*Server).standing),
		},
		{
			"revoke-saved-answer", http.MethodDelete, "/saved-answers/{id}", "Have an answer stand no longer",
			"What it has allowed is done; the next call like it is asked about again.",
			answer((*Server).revokeStanding),
		},
		{
			"retry-agent", post, "/agents/{name}/retry", "Try a provider again before its time",
			"Of an agent that is rate limited: it is started again as what is wanted of it says, though its provider has said to wait longer. No agent may (X10).",
			answer((*Server).retryAgent),
		},
		{
			"end-agent-session", post, "/agents/{name}/end", "End the session that an agent is at work in",
			"It has the time that `grace` gives it; asked again, it is ended at once. What is wanted of the agent stays: order `stop` first, or who is to run continuously is started again. Refused where none runs, where a step of a run has it (`cancel`), or where it leads the team (`sleep`). No agent may (X10).",
			answer((*Server).endAgentSession),
		},
		{
			"list-usage", get, "/usage", "What was used",
			"Tokens and cost as agents report them themselves: by agent, by day (UTC), by run. Of archived runs only where they are asked for: the whole journal is read for them.",
			answer((*Server).usage),
		},
	}
}

func (s *Server) questions(ctx context.Context, _ *nothing) (*api.Questions, error) {
	all, err := s.engine.Questions(ctx)
	for i := range all {
		noNullsIn(&all[i])
	}
	return &api.Questions{Questions: some(all)}, err
}

func (s *Server) question(ctx context.Context, in *questionIn) (*view.QuestionView, error) {
	q, err := s.engine.QuestionByID(ctx, in.ID)
	noNullsIn(&q)
	return &q, err
}

func (s *Server) answerQuestion(ctx context.Context, in *answerQuestionIn) (*api.Ordered, error) {
	if err := mayAnswer(ctx, "replied", in.ID); err != nil {
		return nil, err
	}
	seq, err := s.engine.AnswerQuestion(ctx, s.actor(ctx), in.ID, view.QuestionAnswer(in.Body))
	return &api.Ordered{Seq: seq}, err
}

func (s *Server) standing(ctx context.Context, _ *nothing) (*api.StandingAnswers, error) {
	all, err := s.engine.Standing(ctx)
	return &api.StandingAnswers{Standing: some(all)}, err
}

func (s *Server) revokeStanding(ctx context.Context, in *standingIn) (*api.Ordered, error) {
	if err := mayAnswer(ctx, "revoked", in.ID); err != nil {
		return nil, err
	}
	seq, err := s.engine.RevokeStanding(ctx, s.actor(ctx), in.ID)
	return &api.Ordered{Seq: seq}, err
}

func (s *Server) retryAgent(ctx context.Context, in *ableIn) (*api.Ordered, error) {
	if err := callerIn(ctx).mayOrder("limit_lifted", in.Name, ""); err != nil {
		return nil, err
	}
	seq, err := s.engine.LiftLimit(ctx, s.actor(ctx), in.Name)
	return &api.Ordered{Seq: seq}, err
}

func (s *Server) endAgentSession(ctx context.Context, in *ableIn) (*api.Ordered, error) {
	if err := callerIn(ctx).mayOrder("end_asked", in.Name, ""); err != nil {
		return nil, err
	}
	seq, err := s.engine.EndAgentSession(ctx, s.actor(ctx), in.Name)
	return &api.Ordered{Seq: seq}, err
}

type usageIn struct {
	Archived bool `query:"archived" doc:"Also what runs have used that are archived"`
}

func (s *Server) usage(ctx context.Context, in *usageIn) (*view.UsageTable, error) {
	used, err := s.engine.Usage(ctx, in.Archived)
	used.Agents, used.Days, used.Runs = some(used.Agents), some(used.Days), some(used.Runs)
	return &used, err
}

// mayAnswer refuses every agent (X10): it would allow itself, or have another one allow it.
func mayAnswer(ctx context.Context, event, id string) error {
	c := callerIn(ctx)
	return c.because("only a person answers what an agent asks, and takes an answer back; whoever asks gets to know what was said", c.mayOrder(event, id, ""))
}

// noNullsIn is a question in which no list is null, with what a person should look at.
func noNullsIn(q *view.QuestionView) {
	q.Paths, q.Differs, q.Options = some(q.Paths), some(q.Differs), some(q.Options)
	q.Hints = some(hintsOf(q))
}
