package team

import (
	"strings"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// Transition is one transition of one agent or step, for the transition log (X6).
type Transition struct {
	Entity string
	Agent  string // agentId; empty: the team, a channel, or a run as a whole
	From   string
	To     string
}

// Transitions splits a change into its transitions: usually one, but a change of many steps has one
// for each. agentOf returns the agent of a step; if it is nil or returns nothing, the step's name is
// used.
func Transitions(ch change.Change, agentOf func(run, step string) string) []Transition {
	id, isRun := strings.CutPrefix(ch.Entity, runPrefix)
	if !isRun {
		line := Transition{Entity: ch.Entity, Agent: AgentOf(ch.Entity), From: ch.From, To: ch.To}
		if strings.HasPrefix(ch.Entity, "team/") || strings.HasPrefix(ch.Entity, channel.EntityPrefix) || ch.Entity == crew.LeadEntity {
			line.Agent = ""
		}
		switch body := ch.Body.(type) {
		case *DispatchSet:
			line.Agent = ch.To // the transition concerns the agent with the task
			if body.End != nil {
				return nil // no state changed
			}
		case *TeamSet, *notice.Record, *host.Body:
			line.Agent = ""
		case *question.Body:
			line.Agent = body.Agent()
			if body.Question == nil {
				return nil // saved answers have no states
			}
		case *crew.Body:
			if body.Words != nil {
				return nil // no state changed
			}
			if body.Lead != nil {
				line.Agent = body.Lead.Agent
			}
		}
		return []Transition{line}
	}
	who := func(run, step string) string {
		if agentOf != nil && step != "" {
			if agent := agentOf(run, step); agent != "" {
				return agent
			}
		}
		return step
	}
	run, step, _ := strings.Cut(id, "/")
	var moves []workflow.Move
	if body := change.As[workflow.Body](ch.Body); body != nil && body.Reset != nil {
		moves = body.Reset.Moves
	} else if body != nil && body.Moved != nil {
		moves = body.Moved.Moves
	}
	if moves == nil {
		return []Transition{{Entity: ch.Entity, Agent: who(run, step), From: ch.From, To: ch.To}}
	}
	lines := make([]Transition, 0, len(moves))
	for _, move := range moves {
		lines = append(lines, Transition{
			Entity: stepEntity(run, move.Step), Agent: who(run, string(move.Step)), From: string(move.From), To: ch.To,
		})
	}
	return lines
}

// StepAgent returns the agent of a step in its plan; empty: none, or the run is unknown.
func (t *Team) StepAgent(run, step string) string {
	if r := t.Runs[run]; r != nil {
		if plan, _, ok := r.Find(workflow.StepID(step)); ok {
			return plan.Agent
		}
	}
	return ""
}
