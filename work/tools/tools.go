package tools

import (
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/work/questions"
	"github.com/fairlead-dev/fairlead/work/runs"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/turns"
)

// ToolController is what an agent can do for itself from within one of its sessions.
type ToolController struct {
	*loop.Loop
	sessions  *sessions.SessionController
	channels  *turns.ChannelController
	runs      *runs.RunController
	questions *questions.QuestionController
}

// New makes the controller of the agents' tools.
func New(l *loop.Loop, sessions *sessions.SessionController, channels *turns.ChannelController, runs *runs.RunController,
	questions *questions.QuestionController,
) *ToolController {
	return &ToolController{Loop: l, sessions: sessions, channels: channels, runs: runs, questions: questions}
}
