package engine

import (
	"fmt"

	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/turn"
	"github.com/fairlead-dev/fairlead/team"
)

// talk is the session in which an agent is told what its channels ask for, or, where it leads the
// team, what that asks for.
func (p *planner) talk(a *team.Agent) (PlanStep, bool) {
	t := p.team
	if t.Hold.On || t.Stopping || a.Removed || a.Settings.Policy.Foreign || t.OverLimit(a, p.at) != "" {
		return PlanStep{}, false
	}
	if lead := &t.Crew.Lead; lead.Agent == a.Name && len(lead.Asks) > 0 && t.LeadWaits(p.at) == "" {
		return PlanStep{Do: DoStart, Session: nextSession(a), Kind: string(control.Lead), Why: leadWords(turn.Errand(lead.Asks[0].Do))}, true
	}
	for _, todo := range t.TalkTodo(a.Name, p.at) {
		if todo.Do != turn.StopWork {
			return PlanStep{Do: DoStart, Session: nextSession(a), Kind: string(control.Talk), Why: talkWords(todo.Do, todo.Token)}, true
		}
	}
	return p.work(a)
}

func nextSession(a *team.Agent) string { return fmt.Sprintf("%s-%d", a.Name, a.Opened+1) }

// talkWords say what an agent is to be told.
func talkWords(do turn.Errand, token turn.Token) string {
	if team.OfLead(token) {
		return leadWords(do)
	}
	channel := "#" + string(token.Channel)
	switch do {
	case turn.TellTurn:
		return fmt.Sprintf("it has turn %d in %s, and is to be told", token.Turn, channel)
	case turn.TellGoOn:
		return fmt.Sprintf("its turn %d in %s goes on, and it is to be told", token.Turn, channel)
	case turn.TellAside:
		return "a person interrupted in " + channel + ", and waits for its answer"
	default:
		return "a person said something to it in " + channel
	}
}
