package channels

import (
	"context"
	"log/slog"
	"sync"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/channel"
)

// Controller tells agents about their turns and takes what people and foreign agents say.
type Controller struct {
	*loop.Loop
	sessions *sessions.Controller
	opts     seam.Options
	log      *slog.Logger

	// Hooks are set before the loop runs.
	Hooks Hooks

	// Only the loop's goroutine reads or writes these.
	parts map[string]*part // of agents in channels
	dues  dues             // the next deadline of every channel

	talkMu sync.Mutex
	voices map[string]*Voice        // of sessions that take part in channels, while they are followed
	waits  map[string]chan struct{} // closed when there may be something new for an agent that fetches it

	books  books         // where in the journal the conversations are
	probes chan struct{} // limits the probes that run at once
}

// Hooks are what the crew's controller does for the lead's session.
type Hooks struct {
	// LeadPrompt is the text of an action that is told to the lead.
	LeadPrompt func(ctx context.Context, todo channel.Action, atStart bool) (string, error)

	// LeadTold acknowledges such an action that needed no text.
	LeadTold func(ctx context.Context, m *sessions.Slot, n uint64) error
}

// New makes the controller of the channels.
func New(l *loop.Loop, opts seam.Options, sessions *sessions.Controller) *Controller {
	return &Controller{
		Loop: l, sessions: sessions, opts: opts, log: opts.Log, parts: map[string]*part{},
		voices: map[string]*Voice{}, waits: map[string]chan struct{}{},
		books: books{making: make(chan struct{}, 1)}, probes: make(chan struct{}, probesMax),
	}
}
