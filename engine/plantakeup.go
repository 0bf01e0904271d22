package engine

import (
	"strings"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/machine/question"
	"github.com/fairlead-dev/fairlead/team"
)

// PlanTalk says with which conversation of its program a session goes on.
type PlanTalk struct {
	Do      string   `json:"do"`                // resume, fresh, or ask: a person is asked which of both
	ID      string   `json:"id,omitempty"`      // of the conversation that it goes on with, or is asked about
	If      string   `json:"if,omitempty"`      // resumed only then, else it begins a new one: how it ended is not known yet
	Differs []string `json:"differs,omitempty"` // in what it would go on otherwise than it began; ask
	Why     string   `json:"why,omitempty"`     // of fresh
}

const (
	askFirst = "ask"
	ifCutOff = "it was cut off"
)

// String is for people, to stand behind what is done.
func (t *PlanTalk) String() string {
	switch {
	case t.Do == goOn && t.If != "":
		return "goes on with conversation " + t.ID + " if " + t.If + ", else begins a new one"
	case t.Do == goOn:
		return "goes on with conversation " + t.ID
	case t.Do == askFirst:
		return "asks a person first whether to go on with conversation " + t.ID + ", which would go on otherwise than it began: " + strings.Join(t.Differs, "; ")
	}
	return "begins a new conversation: " + t.Why
}

// resumption is what is known of how an agent's sessions would be started, as far as going on with a
// conversation asks for it.
type resumption struct {
	how    config.Resume
	record *team.LaunchRecord
}

// resumption looks at how an agent would be started. Nil: its driver has no conversations to go on with.
func (m *member) resumption() *resumption {
	resumer, can := m.driver.(driver.Resumer)
	agent := known(*m.conf)
	for _, name := range m.conf.Env.Names() { // of its values nothing is written down
		agent.Env = append(agent.Env, name+"=")
	}
	if !can || m.run != "" || !resumer.Resumes(agent) {
		return nil
	}
	return &resumption{m.conf.Resume, recordOf(m, agent)}
}

// takeUp says which conversation a session that is planned comes by: what takenUp will find, as far as
// it is known by now. A step and the work of a session folder are started in a way of their own, which
// is compared when they begin.
func (p *planner) takeUp(a *team.Agent, s *team.Session) *PlanTalk {
	r := p.resumes[a.Name]
	if r == nil {
		return nil
	}
	if r.how == config.ResumeNever {
		return &PlanTalk{Do: anew, Why: "its configuration says `resume: never`"}
	}
	c := a.Conversations[s.For]
	if c == nil || c.ID == "" {
		return &PlanTalk{Do: anew, Why: "there is none to go on with"}
	}
	wanted, _, why := takesUp(a, s, c, r.how)
	if !wanted {
		return &PlanTalk{Do: anew, Why: why}
	}
	differs := otherwise(c, r.record)
	if len(differs) == 0 || s.For != team.ForControl && !s.Talks() {
		return &PlanTalk{Do: goOn, ID: c.ID}
	}
	q := takeUpAnswer(p.team, a.Name, s.ID, takeUpAsk(c.ID, differs), false)
	switch {
	case q == nil || q.State != question.Told && q.State != question.Answered:
		return &PlanTalk{Do: askFirst, ID: c.ID, Differs: differs}
	case q.Option == goOn:
		return &PlanTalk{Do: goOn, ID: c.ID}
	}
	return &PlanTalk{Do: anew, Why: "a person said so, of " + c.ID}
}

// goesOn says in which conversation a session is that is listened to again.
func (p *planner) goesOn(a *team.Agent, s *team.Session) *PlanTalk {
	if c := a.Conversations[s.For]; c != nil && c.Session == s.ID && c.ID != "" {
		return &PlanTalk{Do: goOn, ID: c.ID}
	}
	return nil
}

// eitherTalk is what a session comes by whose predecessor's end is not read yet.
func eitherTalk(well, failed *PlanTalk) *PlanTalk {
	if well == nil || failed == nil || well.Do == failed.Do && well.ID == failed.ID {
		return well
	}
	return failed.ifCutOff()
}

// ifCutOff is what follows of an end that is not read yet: one who said himself that he failed was
// not cut off.
func (t *PlanTalk) ifCutOff() *PlanTalk {
	if t == nil || t.Do != goOn {
		return t
	}
	return &PlanTalk{Do: goOn, ID: t.ID, If: ifCutOff}
}
