package crew

import (
	"log/slog"

	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/work/seam"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/turns"
)

// CrewController serves the lead and its members.
type CrewController struct {
	*loop.Loop
	sessions *sessions.SessionController
	channels *turns.ChannelController
	opts     seam.Options
	log      *slog.Logger

	CrewState crewSide // the index of transcripts, and the state of the document files
}

// New makes the controller of the crew.
func New(l *loop.Loop, opts seam.Options, sessions *sessions.SessionController, channels *turns.ChannelController) *CrewController {
	return &CrewController{Loop: l, sessions: sessions, channels: channels, opts: opts, log: opts.Log, CrewState: newCrewSide()}
}
