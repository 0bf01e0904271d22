package tools

import (
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/work/questions"
	"github.com/fairlead-dev/fairlead/work/runs"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/turns"
)

// Controller is what an agent can do for itself from within one of its sessions.
type Controller struct {
	loop      *loop.Loop
	sessions  *sessions.Controller
	channels  *turns.Controller
	runs      *runs.Controller
	questions *questions.Controller
}

// New makes the controller of the agents' tools.
func New(l *loop.Loop, sessions *sessions.Controller, channels *turns.Controller, runs *runs.Controller,
	questions *questions.Controller,
) *Controller {
	return &Controller{loop: l, sessions: sessions, channels: channels, runs: runs, questions: questions}
}
