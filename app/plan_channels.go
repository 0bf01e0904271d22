package app

import (
	"fmt"

	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/turns"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team"
)

// channelSession returns the session in which an agent receives the next action of its channels, or
// of the crew if it is the lead.
func (p *planner) channelSession(a *team.Agent) (view.PlanStep, bool) {
	t := p.team
	if t.Hold.On || t.Stopping || a.Removed || a.Settings.Policy.Foreign || t.OverLimit(a, p.at) != "" {
		return view.PlanStep{}, false
	}
	if lead := &t.Crew.Lead; lead.Agent == a.Name && len(lead.Actions) > 0 && t.LeadWaits(p.at) == "" {
		return p.next(a, control.Lead, team.ForLead, turns.LeadWords(channel.ActionKind(lead.Actions[0].Do))), true
	}
	for _, todo := range t.AgentChannelActions(a.Name, p.at) {
		if todo.Do != channel.StopWork {
			return p.next(a, control.ChannelTurn, team.ForChannels, tellText(todo.Do, todo.Token)), true
		}
	}
	return p.dispatchSession(a)
}

// next returns the next session of an agent's slot.
func (p *planner) next(a *team.Agent, kind control.Kind, forWhom team.Purpose, why string) view.PlanStep {
	s := team.Session{ID: fmt.Sprintf("%s-%d", a.Name, a.Opened+1), Kind: kind, For: forWhom}
	return view.PlanStep{Do: view.DoStart, Session: s.ID, Kind: string(kind), Why: why, Conversation: p.resume(a, &s)}
}

// tellText describes an action for an agent.
func tellText(do channel.ActionKind, token channel.Token) string {
	if team.IsLeadToken(token) {
		return turns.LeadWords(do)
	}
	channelName := "#" + string(token.Channel)
	switch do {
	case channel.TellTurn:
		return fmt.Sprintf("it has turn %d in %s, and is to be told", token.Turn, channelName)
	case channel.TellGoOn:
		return fmt.Sprintf("its turn %d in %s goes on, and it is to be told", token.Turn, channelName)
	case channel.TellAside:
		return "a person interrupted in " + channelName + ", and waits for its answer"
	default:
		return "a person said something to it in " + channelName
	}
}
