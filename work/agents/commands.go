package agents

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/clip"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// Command sets an agent's desired state to one of the seed's four words. It returns when the change
// is durable, with the Seq of its last change. The error is a *table.Refusal or a *team.Unknown
// if the command is refused.
func (c *Controller) Command(ctx context.Context, by change.Actor, agent, desired, note string) (uint64, error) {
	return c.loop.Do(ctx, c.CommandRequest(by, agent, desired, note))
}

// The rate of orders that one agent gives to others: OrdersMax at once, then one per OrdersEvery. An agent that leads others needs a
// few in a minute; without a rate, one that loops fills the journal. People have no rate.
const (
	OrdersMax   = 30
	OrdersEvery = 10 * time.Second
)

// CommandRequest is an order for an agent. Above the rate of an agent, only a pause counts; one that repeats what holds is not
// recorded again.
func (c *Controller) CommandRequest(by change.Actor, agent, desired, note string) loop.Request {
	setBy := by.Kind
	if setBy != "agent" {
		setBy = "human"
	}
	event := loop.EventBy(by, agent, control.Commanded{Desired: desired, By: setBy, Note: note})
	if setBy != "agent" {
		return loop.Request{Event: event}
	}
	var wait time.Duration
	return loop.Request{
		First: func() error {
			if wait = c.orders.Wait(by.ID, c.loop.Now()); wait == 0 || desired == control.WordPause {
				return nil
			}
			return &table.Refusal{
				Subject: agent, Event: "wanted_" + desired, State: "ordered too often", Row: "X9",
				Reason: fmt.Sprintf("%s has given %d orders and may now give one every %v; wait %v. A pause counts at any time", by.ID,
					OrdersMax, OrdersEvery, wait.Round(time.Second)),
				Takes: []string{string(control.WantedPause)},
			}
		},
		Derive: func(decide func(team.Event) error) {
			if a := c.loop.State().Agents[agent]; wait == 0 || a == nil || a.Control.Desired.State != control.WordPause {
				_ = decide(*event) // a refusal is the answer
			}
		},
	}
}

// EndAgentSession ends the agent's current session with its grace; a second call ends it at once.
// The desired state does not change: an agent that should run continuously starts again, so stop it
// first. The error is a *table.Refusal if no session runs, if the session belongs to a run or to
// the lead (other commands end those), or if an agent asks (X10).
func (c *Controller) EndAgentSession(ctx context.Context, by change.Actor, agent string) (uint64, error) {
	if by.Kind == "agent" {
		return 0, &table.Refusal{
			Subject: agent, Event: "end_asked", State: "running", Row: "X10",
			Reason: "only a person can end a session; an agent can pause another agent, which lets its session finish",
		}
	}
	return c.loop.Submit(ctx, by, agent, team.EndAsked{})
}

// Hold stops all new sessions until the hold is released; running sessions finish (X8).
func (c *Controller) Hold(ctx context.Context, by change.Actor, on bool, note string) (uint64, error) {
	note = clip.Text(note, loop.NoteBytesMax)
	if on {
		return c.loop.Submit(ctx, by, "", team.HoldAsked{Note: note})
	}
	return c.loop.Submit(ctx, by, "", team.ReleaseAsked{Note: note})
}

// Governing reports to the team which fairlead.yaml there is.
func (c *Controller) Governing(ctx context.Context, by change.Actor, what team.ConfigEvent) error {
	_, err := c.loop.Submit(ctx, by, "", what)
	return err
}

// Stop lets sessions finish and starts no new ones; with now it ends them (C14). It returns when
// the request is durable; Stopped reports when it is complete.
func (c *Controller) Stop(ctx context.Context, by change.Actor, now bool) error {
	_, err := c.loop.Submit(ctx, by, "", team.StopAsked{Now: now})
	return err
}
