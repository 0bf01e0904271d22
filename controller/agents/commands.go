package agents

import (
	"context"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/internal/clip"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// Command sets an agent's desired state to one of the seed's four words. It returns when the change
// is durable, with the Seq of its last change. The error is a *machine.Refusal or a *team.Unknown
// if the command is refused.
func (c *AgentController) Command(ctx context.Context, by seam.Actor, agent, desired, note string) (uint64, error) {
	return c.Do(ctx, loop.Request{Event: c.CommandEvent(by, agent, desired, note)})
}

// CommandEvent is the event of an order for an agent.
func (c *AgentController) CommandEvent(by seam.Actor, agent, desired, note string) *team.Event {
	setBy := by.Kind
	if setBy != "agent" {
		setBy = "human"
	}
	return loop.EventBy(by, agent, control.Commanded{Desired: desired, By: setBy, Note: note})
}

// EndAgentSession ends the agent's current session with its grace; a second call ends it at once.
// The desired state does not change: an agent that should run continuously starts again, so stop it
// first. The error is a *machine.Refusal if no session runs, if the session belongs to a run or to
// the lead (other commands end those), or if an agent asks (X10).
func (c *AgentController) EndAgentSession(ctx context.Context, by seam.Actor, agent string) (uint64, error) {
	if by.Kind == "agent" {
		return 0, &machine.Refusal{
			Subject: agent, Event: "end_asked", State: "running", Row: "X10",
			Reason: "only a person can end a session; an agent can pause another agent, which lets its session finish",
		}
	}
	return c.Submit(ctx, by, agent, team.EndAsked{})
}

// Hold stops all new sessions until the hold is released; running sessions finish (X8).
func (c *AgentController) Hold(ctx context.Context, by seam.Actor, on bool, note string) (uint64, error) {
	note = clip.Text(note, loop.NoteBytesMax)
	if on {
		return c.Submit(ctx, by, "", team.HoldAsked{Note: note})
	}
	return c.Submit(ctx, by, "", team.ReleaseAsked{Note: note})
}

// Stop lets sessions finish and starts no new ones; with now it ends them (C14). It returns when
// the request is durable; Stopped reports when it is complete.
func (c *AgentController) Stop(ctx context.Context, by seam.Actor, now bool) error {
	_, err := c.Submit(ctx, by, "", team.StopAsked{Now: now})
	return err
}
