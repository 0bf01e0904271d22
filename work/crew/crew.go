package crew

import (
	"log/slog"

	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// Controller serves the lead and its members.
type Controller struct {
	loop     *loop.Loop
	sessions *sessions.Controller
	opts     outside.Options
	log      *slog.Logger

	CrewState crewSide // the index of transcripts, and the state of the document files
}

// New makes the controller of the crew.
func New(l *loop.Loop, opts outside.Options, sessions *sessions.Controller) *Controller {
	return &Controller{loop: l, sessions: sessions, opts: opts, log: opts.Log, CrewState: newCrewSide()}
}
