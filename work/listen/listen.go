package listen

import (
	"log/slog"

	"github.com/fairlead-dev/fairlead/engine/loop"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/questions"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/turns"
)

// Listener follows sessions.
type Listener struct {
	loop      *loop.Loop
	sessions  *sessions.Controller
	channels  *turns.Controller
	dispatch  *dispatchctl.Controller
	questions *questions.Controller
	opts      outside.Options
	log       *slog.Logger
}

// Parts are the controllers that listeners report to.
type Parts struct {
	Sessions  *sessions.Controller
	Channels  *turns.Controller
	Dispatch  *dispatchctl.Controller
	Questions *questions.Controller
}

// New makes a listener.
func New(l *loop.Loop, opts outside.Options, p Parts) *Listener {
	return &Listener{
		loop: l, sessions: p.Sessions, channels: p.Channels, dispatch: p.Dispatch,
		questions: p.Questions, opts: opts, log: opts.Log,
	}
}
