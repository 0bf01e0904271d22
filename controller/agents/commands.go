package agents

import (
	"context"

	"github.com/fairlead-dev/fairlead/controller/seam"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// Command says what is wanted of an agent: one of the seed's four words. It returns when
// that is durable, with the Seq of the last change that it made.
// The error is a *machine.Refusal or a *team.Unknown where the answer is no.
func (e *Controller) Command(ctx context.Context, by seam.Actor, agent, desired, note string) (uint64, error) {
	return e.Do(ctx, loop.Request{Event: e.CommandEvent(by, agent, desired, note)})
}

func (e *Controller) CommandEvent(by seam.Actor, agent, desired, note string) *team.Event {
	setBy := by.Kind
	if setBy != "agent" {
		setBy = "human"
	}
	return loop.EventBy(by, agent, control.Commanded{Desired: desired, By: setBy, Note: note})
}

// EndAgentSession has the session end that an agent is at work in, with its grace; asked again, at
// once. What is wanted of the agent stays: who is wanted continuously is started again, so stop
// it first. The error is a *machine.Refusal where none runs, where a run or the lead's team has
// it (those have verbs of their own), and where an agent asks (X10).
func (e *Controller) EndAgentSession(ctx context.Context, by seam.Actor, agent string) (uint64, error) {
	if by.Kind == "agent" {
		return 0, &machine.Refusal{
			Subject: agent, Event: "end_asked", State: "running", Row: "X10",
			Reason: "a person ends a session; an agent may have another one paused, which lets it finish",
		}
	}
	return e.Submit(ctx, by, agent, team.EndAsked{})
}

// Hold stops everything from starting until it is released; what runs finishes (X8).
func (e *Controller) Hold(ctx context.Context, by seam.Actor, on bool, note string) (uint64, error) {
	note = loop.CutText(note, loop.NoteBytesMax)
	if on {
		return e.Submit(ctx, by, "", team.HoldAsked{Note: note})
	}
	return e.Submit(ctx, by, "", team.ReleaseAsked{Note: note})
}

// Stop lets sessions finish and nothing new begin; now ends them (C14). It returns when that
// is durable; Stopped says when it is complete.
func (e *Controller) Stop(ctx context.Context, by seam.Actor, now bool) error {
	_, err := e.Submit(ctx, by, "", team.StopAsked{Now: now})
	return err
}
