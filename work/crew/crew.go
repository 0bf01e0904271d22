package crew

import (
	"log/slog"

	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/work/seam"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/turns"
)

// Controller serves the lead and its members.
type Controller struct {
	loop     *loop.Loop
	sessions *sessions.Controller
	channels *turns.Controller
	opts     seam.Options
	log      *slog.Logger

	CrewState crewSide // the index of transcripts, and the state of the document files
}

// New makes the controller of the crew.
func New(l *loop.Loop, opts seam.Options, sessions *sessions.Controller, channels *turns.Controller) *Controller {
	return &Controller{loop: l, sessions: sessions, channels: channels, opts: opts, log: opts.Log, CrewState: newCrewSide()}
}
