package agents

import (
	"log/slog"
	"sync"

	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// Controller keeps each agent's agent_state.json and desired state, and starts its actions.
type Controller struct {
	loop     *loop.Loop
	sessions *sessions.Controller
	opts     outside.Options
	log      *slog.Logger

	// Only the loop's goroutine reads or writes these.
	Files     map[string]*AgentFile // by agent
	warned    map[string]bool
	Rebooted  bool         // the machine was booted since the last epoch
	Moved     bool         // another machine led before, so the files of this one are old and are no orders
	writers   int          // number of writes in progress
	unwritten []*AgentFile // files that wait for a free writer
	orders    loop.Buckets // of agents that order other agents
	reaches   func() []reach

	intake intake
}

// New makes a controller without agents.
func New(l *loop.Loop, opts outside.Options, sessions *sessions.Controller) *Controller {
	return &Controller{
		loop: l, sessions: sessions, opts: opts, log: opts.Log, reaches: sync.OnceValue(func() []reach { return reachesOf(opts.Config) }),
		Files: map[string]*AgentFile{}, warned: map[string]bool{},
		orders: loop.Buckets{Most: OrdersMax, Every: OrdersEvery},
	}
}

// Add makes the controller keep the file of a slot's agent.
func (c *Controller) Add(m *sessions.Slot) { c.Files[m.Conf.Name] = &AgentFile{Slot: m} }
