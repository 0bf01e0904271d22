package turns

import (
	"log/slog"
	"sync"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/engine/loop"
	crewctl "github.com/fairlead-dev/fairlead/work/crew"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// Controller delivers turns to agents and records what people and foreign agents say.
type Controller struct {
	loop *loop.Loop
	*Conversations
	sessions *sessions.Controller
	crew     *crewctl.Controller // makes the prompts of the lead
	opts     outside.Options
	log      *slog.Logger

	// Only the loop's goroutine reads or writes these.
	participants map[string]*participant // by the agent's name
	timers       timerQueue              // the next deadline of every channel
	waits        map[string]*actionWait  // by agent: requests that wait for its actions
	silences     map[channel.ChannelID]silence

	mu      sync.Mutex
	writers map[string]*SessionWriter // of the sessions that take part in channels, by session id, while they are followed

	probes chan struct{} // limits concurrent probes
}

// Conversations reads what was said in channels.
type Conversations struct {
	loop  *loop.Loop
	log   *slog.Logger
	index messageIndex // where in the journal the conversations are
}

// New makes the controller of the channels.
func New(l *loop.Loop, opts outside.Options, sessions *sessions.Controller, crew *crewctl.Controller) *Controller {
	return &Controller{
		loop: l, Conversations: &Conversations{loop: l, log: opts.Log, index: messageIndex{making: make(chan struct{}, 1)}},
		sessions: sessions, crew: crew, opts: opts, log: opts.Log, participants: map[string]*participant{},
		writers: map[string]*SessionWriter{}, waits: map[string]*actionWait{}, silences: map[channel.ChannelID]silence{},
		probes: make(chan struct{}, probesMax),
	}
}
