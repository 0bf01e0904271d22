package tools

import (
	"github.com/fairlead-dev/fairlead/controller/channels"
	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/loop"
)

// Controller is what an agent can do for itself from within one of its sessions.
type Controller struct {
	*loop.Loop
	sessions *sessions.Controller
	channels *channels.Controller
	runs     *runs.Controller
}

// New makes the controller of the agents' tools.
func New(l *loop.Loop, sessions *sessions.Controller, channels *channels.Controller, runs *runs.Controller) *Controller {
	return &Controller{Loop: l, sessions: sessions, channels: channels, runs: runs}
}
