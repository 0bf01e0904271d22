package tools

import (
	"github.com/fairlead-dev/fairlead/controller/channels"
	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/loop"
)

// ToolController is what an agent can do for itself from within one of its sessions.
type ToolController struct {
	*loop.Loop
	sessions *sessions.SessionController
	channels *channels.ChannelController
	runs     *runs.RunController
}

// New makes the controller of the agents' tools.
func New(l *loop.Loop, sessions *sessions.SessionController, channels *channels.ChannelController, runs *runs.RunController) *ToolController {
	return &ToolController{Loop: l, sessions: sessions, channels: channels, runs: runs}
}
