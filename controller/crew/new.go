package crew

import (
	"log/slog"

	"github.com/fairlead-dev/fairlead/controller/channels"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/loop"
)

// CrewController serves the lead and its members.
type CrewController struct {
	*loop.Loop
	sessions *sessions.SessionController
	channels *channels.ChannelController
	opts     seam.Options
	log      *slog.Logger

	CrewState crewSide // the index of transcripts, and the state of the document files
}

// New makes the controller of the crew.
func New(l *loop.Loop, opts seam.Options, sessions *sessions.SessionController, channels *channels.ChannelController) *CrewController {
	return &CrewController{Loop: l, sessions: sessions, channels: channels, opts: opts, log: opts.Log, CrewState: newCrewSide()}
}
