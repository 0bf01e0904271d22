package starts

import (
	"context"
	"log/slog"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/hosts/membership"
	"github.com/fairlead-dev/fairlead/work/agents"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
	"github.com/fairlead-dev/fairlead/work/listen"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/runs"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/turns"
)

// Controller starts, adopts and follows sessions.
type Controller struct {
	loop  *loop.Loop
	opts  outside.Options
	log   *slog.Logger
	parts Parts
}

// Parts are the controllers that a session is for.
type Parts struct {
	Sessions *sessions.Controller
	Agents   *agents.Controller
	Channels *turns.Controller
	Runs     *runs.Controller
	Dispatch *dispatchctl.Controller
	Listener *listen.Listener
	Cluster  *membership.Controller
}

// New makes the controller. The Host of opts is that of all sessions of the team.
func New(l *loop.Loop, opts outside.Options, parts Parts) *Controller {
	return &Controller{loop: l, opts: opts, log: opts.Log, parts: parts}
}

// StartHooks are what the controller does in the loop's goroutine.
func (c *Controller) StartHooks() loop.Hooks {
	return loop.Hooks{Act: func(t *loop.Touched) {
		for name := range t.Agents {
			c.actOnAgent(name)
		}
		for id := range t.Runs {
			c.actOnRun(id)
		}
	}}
}

// actOnAgent begins what the sessions of an agent need and what has not begun. It is called after every change, so that no other
// code has to remember to call it.
func (c *Controller) actOnAgent(name string) {
	a, m := c.loop.State().Agents[name], c.parts.Sessions.Slots[name]
	if a == nil || m == nil || c.loop.Holding() {
		return
	}
	for todo := range c.loop.State().Actions(a) {
		if todo.Do == team.StartSession || todo.Do == team.EndSession {
			c.begin(m.At(todo.Session.Slot), todo)
		}
	}
}

// actOnRun does the same for the sessions of a run's steps without an agent.
func (c *Controller) actOnRun(id string) {
	if c.loop.Holding() {
		return
	}
	for _, todo := range c.loop.State().RunActions(id, c.loop.Now()) {
		if todo.Do == team.StartSession || todo.Do == team.EndSession {
			c.begin(c.parts.Runs.PoolSlot(&todo.Session), todo)
		}
	}
}

func (c *Controller) begin(m *sessions.Slot, todo team.Action) {
	s := todo.Session
	if m.Begun(s.ID, todo.Key) {
		return
	}
	if todo.Do == team.StartSession {
		c.loop.Go(func(ctx context.Context) { c.start(ctx, m, s) })
		return
	}
	c.loop.Go(func(ctx context.Context) { c.parts.Sessions.EndSession(ctx, m, s) })
}
