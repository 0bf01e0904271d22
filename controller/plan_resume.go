package controller

import (
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/machine/question"
	"github.com/fairlead-dev/fairlead/team"
)

// takeUp says which conversation a session that is planned comes by: what takenUp will find, as far as
// it is known by now. A step and the work of a session folder are started in a way of their own, which
// is compared when they begin.
func (p *planner) takeUp(a *team.Agent, s *team.Session) *view.PlanTalk {
	r := p.resumes[a.Name]
	if r == nil {
		return nil
	}
	if r.How == config.ResumeNever {
		return &view.PlanTalk{Do: view.Anew, Why: "its configuration says `resume: never`"}
	}
	c := a.Conversations[s.For]
	if c == nil || c.ID == "" {
		return &view.PlanTalk{Do: view.Anew, Why: "there is none to go on with"}
	}
	wanted, _, why := sessions.TakesUp(a, s, c, r.How)
	if !wanted {
		return &view.PlanTalk{Do: view.Anew, Why: why}
	}
	differs := sessions.Otherwise(c, r.Record)
	if len(differs) == 0 || s.For != team.ForControl && !s.ServesChannels() {
		return &view.PlanTalk{Do: view.GoOn, ID: c.ID}
	}
	q := sessions.TakeUpAnswer(p.team, a.Name, s.ID, sessions.TakeUpAsk(c.ID, differs), false)
	switch {
	case q == nil || q.State != question.Told && q.State != question.Answered:
		return &view.PlanTalk{Do: view.AskFirst, ID: c.ID, Differs: differs}
	case q.Option == view.GoOn:
		return &view.PlanTalk{Do: view.GoOn, ID: c.ID}
	}
	return &view.PlanTalk{Do: view.Anew, Why: "a person said so, of " + c.ID}
}

// goesOn says in which conversation a session is that is listened to again.
func (p *planner) goesOn(a *team.Agent, s *team.Session) *view.PlanTalk {
	if c := a.Conversations[s.For]; c != nil && c.Session == s.ID && c.ID != "" {
		return &view.PlanTalk{Do: view.GoOn, ID: c.ID}
	}
	return nil
}

// eitherTalk is what a session comes by whose predecessor's end is not read yet.
func eitherTalk(well, failed *view.PlanTalk) *view.PlanTalk {
	if well == nil || failed == nil || well.Do == failed.Do && well.ID == failed.ID {
		return well
	}
	return failed.IfCutOff()
}
