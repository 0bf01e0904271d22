package status

import (
	"time"

	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/hosts/membership"
	"github.com/fairlead-dev/fairlead/work/agents"
	crewctl "github.com/fairlead-dev/fairlead/work/crew"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/questions"
	"github.com/fairlead-dev/fairlead/work/runs"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/turns"
)

// Controller reports the status of each agent, with its evidence.
type Controller struct {
	loop      *loop.Loop
	sessions  *sessions.Controller
	agents    *agents.Controller
	channels  *turns.Controller
	crew      *crewctl.Controller
	dispatch  *dispatchctl.Controller
	runs      *runs.Controller
	questions *questions.Controller
	cluster   *membership.Controller
	opts      outside.Options
	started   time.Time
	digests   digests
}

// Parts are the controllers that provide the evidence.
type Parts struct {
	Sessions  *sessions.Controller
	Agents    *agents.Controller
	Channels  *turns.Controller
	Crew      *crewctl.Controller
	Dispatch  *dispatchctl.Controller
	Runs      *runs.Controller
	Questions *questions.Controller
	Cluster   *membership.Controller
}

// New makes the controller of the status.
func New(l *loop.Loop, opts outside.Options, p Parts) *Controller {
	return &Controller{
		loop: l, sessions: p.Sessions, agents: p.Agents, channels: p.Channels, crew: p.Crew, dispatch: p.Dispatch,
		runs: p.Runs, questions: p.Questions, cluster: p.Cluster,
		opts: opts, started: time.Now(),
	}
}
