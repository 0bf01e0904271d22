package agents

import (
	"context"
	"log/slog"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/loop"
)

// Controller keeps each agent's agent_state.json and desired state, and starts its actions.
type Controller struct {
	*loop.Loop
	sessions *sessions.Controller
	opts     seam.Options
	log      *slog.Logger

	// Only the loop's goroutine reads or writes these.
	Files     map[string]*AgentFile // by agent
	warned    map[string]bool
	Rebooted  bool         // the machine was booted since the last epoch
	writers   int          // files that are being written
	unwritten []*AgentFile // files that wait to be written until others are

	Pumping context.CancelFunc // ends the taking in of looks
	pumped  chan struct{}      // closed when every look that was taken in is in the queue
}

// New makes a controller without agents.
func New(l *loop.Loop, opts seam.Options, sessions *sessions.Controller) *Controller {
	return &Controller{
		Loop: l, sessions: sessions, opts: opts, log: opts.Log,
		Files: map[string]*AgentFile{}, warned: map[string]bool{}, pumped: make(chan struct{}),
	}
}

// Add keeps the file of a slot's agent from now on.
func (e *Controller) Add(m *sessions.Slot) { e.Files[m.Conf.Name] = &AgentFile{Slot: m} }
