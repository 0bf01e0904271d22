package server

import (
	"context"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

// asked is the one question that the fake knows.
func (f *fake) askedNow() view.QuestionView {
	return view.QuestionView{
		ID: "q1", Kind: "permission", Agent: "coder", Session: "coder-1", State: "open", What: "rm -rf build", Why: "no rule allows it",
		Tool: "Bash", Call: `{"command":"rm -rf build"}`, Workspace: "/nowhere/repo", Options: []view.OptionView{{ID: "y", Kind: "allow_once"}},
		MayStand: true, AskedAt: testTime, Hints: []string{"it deletes files"},
	}
}

func (f *fake) knowsQuestion(id, text string) error {
	if err := f.answer(); err != nil {
		return err
	}
	switch {
	case id != "q1" && id != "s1":
		return &team.Unknown{What: "question", Name: id, Known: []string{"q1"}}
	case text == "refuse":
		return &machine.Refusal{Subject: "q1", Event: "replied", State: "answered", Row: "Q3", Reason: "it was answered by human/ann"}
	}
	return nil
}

func (f *fake) Questions(context.Context) ([]view.QuestionView, error) {
	return []view.QuestionView{f.askedNow()}, f.answer()
}

func (f *fake) QuestionByID(_ context.Context, id string) (view.QuestionView, error) {
	return f.askedNow(), f.knowsQuestion(id, "")
}

func (f *fake) AnswerQuestion(_ context.Context, by seam.Actor, id string, answer view.QuestionAnswer) (uint64, error) {
	if err := f.knowsQuestion(id, answer.Text); err != nil {
		return 0, err
	}
	f.said(by, "answer %s %s", id, api.Encode(answer))
	return 11, nil
}

func (f *fake) Standing(context.Context) ([]view.StandingView, error) {
	return []view.StandingView{{ID: "s1", Agent: "coder", Tool: "Bash", Call: "ls", Allow: true, By: "human/sam", At: testTime}}, f.answer()
}

func (f *fake) RevokeStanding(_ context.Context, by seam.Actor, id string) (uint64, error) {
	if err := f.knowsQuestion(id, ""); err != nil {
		return 0, err
	}
	f.said(by, "revoke %s", id)
	return 12, nil
}

func (f *fake) LiftLimit(ctx context.Context, by seam.Actor, agent string) (uint64, error) {
	if _, err := f.Agent(ctx, agent); err != nil {
		return 0, err
	}
	f.said(by, "retry %s", agent)
	return 13, nil
}

func (f *fake) EndAgentSession(ctx context.Context, by seam.Actor, agent string) (uint64, error) {
	if _, err := f.Agent(ctx, agent); err != nil {
		return 0, err
	}
	f.said(by, "end %s", agent)
	return 14, nil
}

func (f *fake) TellRunning(ctx context.Context, by seam.Actor, target, text string) (view.TellResult, error) {
	if _, err := f.Agent(ctx, target); err != nil {
		return view.TellResult{}, err
	}
	f.said(by, "tell %s %q", target, text)
	return view.TellResult{Seq: 15, Agent: target, Session: target + "-1", When: view.TellAtOnce}, nil
}

func (f *fake) Digest(_ context.Context, since time.Time) (view.Digest, error) {
	return view.Digest{Since: since, Lines: []view.DigestLine{}, CostUSD: 0.5}, f.answer()
}

func (f *fake) Usage(context.Context, bool) (view.UsageTable, error) {
	return view.UsageTable{Agents: []view.UsageRow{{Agent: "coder", Sessions: 2, InputTokens: 3, CostUSD: 0.5}}}, f.answer()
}
