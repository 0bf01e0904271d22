package status

import (
	"time"

	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/agents"
	crewctl "github.com/fairlead-dev/fairlead/work/crew"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
	"github.com/fairlead-dev/fairlead/work/questions"
	"github.com/fairlead-dev/fairlead/work/runs"
	"github.com/fairlead-dev/fairlead/work/seam"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/turns"
)

// StatusController reports the status of each agent, with its evidence.
type StatusController struct {
	*loop.Loop
	sessions  *sessions.SessionController
	agents    *agents.AgentController
	channels  *turns.ChannelController
	crew      *crewctl.CrewController
	dispatch  *dispatchctl.DispatchController
	runs      *runs.RunController
	questions *questions.QuestionController
	opts      seam.Options
	started   time.Time
	digests   digests

	// on the leader of a cluster: what it knows of the hosts beside the journal; it is called in the loop
	HostsBeside func() view.HostsBeside
}

// Parts are the controllers that provide the evidence.
type Parts struct {
	Sessions  *sessions.SessionController
	Agents    *agents.AgentController
	Channels  *turns.ChannelController
	Crew      *crewctl.CrewController
	Dispatch  *dispatchctl.DispatchController
	Runs      *runs.RunController
	Questions *questions.QuestionController
}

// New makes the controller of the status.
func New(l *loop.Loop, opts seam.Options, p Parts) *StatusController {
	return &StatusController{
		Loop: l, sessions: p.Sessions, agents: p.Agents, channels: p.Channels, crew: p.Crew, dispatch: p.Dispatch,
		runs: p.Runs, questions: p.Questions,
		opts: opts, started: time.Now(),
	}
}
