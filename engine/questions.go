package engine

import (
	"context"

	"github.com/fairlead-dev/fairlead/team"
)

// Questions are those that wait for a person, the oldest first.
func (e *Engine) Questions(context.Context) ([]QuestionView, error) { return []QuestionView{}, nil }

// QuestionByID is one question, also one that was answered and is still known.
func (e *Engine) QuestionByID(_ context.Context, id string) (QuestionView, error) {
	return QuestionView{}, &team.Unknown{What: "question", Name: id}
}

// AnswerQuestion answers what waits for a person. It returns when the answer is durable; who asked is
// told after that.
// The error is a *machine.Refusal or a *team.Unknown where the answer is no.
func (e *Engine) AnswerQuestion(_ context.Context, _ Actor, id string, _ QuestionAnswer) (uint64, error) {
	return 0, &team.Unknown{What: "question", Name: id}
}

// Standing lists the answers that stand, the oldest first.
func (e *Engine) Standing(context.Context) ([]StandingView, error) { return []StandingView{}, nil }

// RevokeStanding has an answer stand no longer.
func (e *Engine) RevokeStanding(_ context.Context, _ Actor, id string) (uint64, error) {
	return 0, &team.Unknown{What: "answer that stands", Name: id}
}

// Usage is what was used, by agent, by day and by run.
func (e *Engine) Usage(context.Context) (UsageTable, error) {
	return UsageTable{Agents: []UsageRow{}, Days: []UsageRow{}, Runs: []UsageRow{}}, nil
}
