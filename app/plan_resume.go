package app

import (
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/team"
)

// resume predicts which conversation a planned session will have, as far as it is known now. Steps
// and dispatch folders have launches of their own, which are compared when they start.
func (p *planner) resume(a *team.Agent, s *team.Session) *view.PlanConversation {
	r := p.resumes[a.Name]
	if r == nil {
		return nil
	}
	if r.How == config.ResumeNever {
		return &view.PlanConversation{Do: view.Anew, Why: "its configuration says `resume: never`"}
	}
	c := a.Conversations[s.For]
	if c == nil || c.ID == "" {
		return &view.PlanConversation{Do: view.Anew, Why: "there is no conversation to resume"}
	}
	wanted, _, why := a.ShouldResume(s, c, p.team.ResumesAlways(s, r.How == config.ResumeAlways))
	if !wanted {
		return &view.PlanConversation{Do: view.Anew, Why: why}
	}
	differs := sessions.LaunchDiffers(c, r.Record)
	if len(differs) == 0 || s.For != team.ForControl && !s.ServesChannels() {
		return &view.PlanConversation{Do: view.GoOn, ID: c.ID}
	}
	q := p.team.ResumeAnswer(a.Name, s.ID, team.ResumeAskID(c.ID, differs), false)
	switch {
	case q == nil || q.State != question.Delivered && q.State != question.Answered:
		return &view.PlanConversation{Do: view.AskFirst, ID: c.ID, Differs: differs}
	case q.Option == view.GoOn:
		return &view.PlanConversation{Do: view.GoOn, ID: c.ID}
	}
	return &view.PlanConversation{Do: view.Anew, Why: "a person decided so, for " + c.ID}
}

// continues returns the conversation of a session that is adopted.
func (p *planner) continues(a *team.Agent, s *team.Session) *view.PlanConversation {
	if c := a.Conversations[s.For]; c != nil && c.Session == s.ID && c.ID != "" {
		return &view.PlanConversation{Do: view.GoOn, ID: c.ID}
	}
	return nil
}

// eitherTalk is the conversation of a session that follows one whose end has not been read yet.
func eitherConversation(well, failed *view.PlanConversation) *view.PlanConversation {
	if well == nil || failed == nil || well.Do == failed.Do && well.ID == failed.ID {
		return well
	}
	return failed.IfCutOff()
}
