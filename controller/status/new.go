package status

import (
	"time"

	"github.com/fairlead-dev/fairlead/controller/agents"
	"github.com/fairlead-dev/fairlead/controller/channels"
	crewctl "github.com/fairlead-dev/fairlead/controller/crew"
	dispatchctl "github.com/fairlead-dev/fairlead/controller/dispatch"
	"github.com/fairlead-dev/fairlead/controller/questions"
	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/loop"
)

// Controller reports the status of each agent, with its evidence.
type Controller struct {
	*loop.Loop
	sessions  *sessions.Controller
	agents    *agents.Controller
	channels  *channels.Controller
	crew      *crewctl.Controller
	dispatch  *dispatchctl.Controller
	runs      *runs.Controller
	questions *questions.Controller
	opts      seam.Options
	started   time.Time
	digests   digests
}

// Parts are the controllers that provide the evidence.
type Parts struct {
	Sessions  *sessions.Controller
	Agents    *agents.Controller
	Channels  *channels.Controller
	Crew      *crewctl.Controller
	Dispatch  *dispatchctl.Controller
	Runs      *runs.Controller
	Questions *questions.Controller
}

// New makes the controller of the status.
func New(l *loop.Loop, opts seam.Options, p Parts) *Controller {
	return &Controller{
		Loop: l, sessions: p.Sessions, agents: p.Agents, channels: p.Channels, crew: p.Crew, dispatch: p.Dispatch,
		runs: p.Runs, questions: p.Questions,
		opts: opts, started: time.Now(),
	}
}
