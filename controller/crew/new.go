package crew

import (
	"log/slog"

	"github.com/fairlead-dev/fairlead/controller/channels"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/loop"
)

// Controller serves the lead and its members.
type Controller struct {
	*loop.Loop
	sessions *sessions.Controller
	channels *channels.Controller
	opts     seam.Options
	log      *slog.Logger

	CrewState crewSide // the index of transcripts, and the state of the document files
}

// New makes the controller of the crew.
func New(l *loop.Loop, opts seam.Options, sessions *sessions.Controller, channels *channels.Controller) *Controller {
	return &Controller{Loop: l, sessions: sessions, channels: channels, opts: opts, log: opts.Log, CrewState: newCrewSide()}
}
