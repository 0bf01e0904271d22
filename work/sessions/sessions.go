package sessions

import (
	"context"
	"log/slog"
	"sync"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/work/seam"
)

// Controller starts, adopts and ends sessions.
type Controller struct {
	loop *loop.Loop
	opts seam.Options
	log  *slog.Logger

	// Hooks connect the controllers that a session is for. They are set before the loop runs.
	Hooks Hooks

	// Only the loop's goroutine reads or writes these.
	Slots   map[string]*Slot         // by the agent's name
	behind  uint64                   // the highest epoch that a shim has obeyed, if it is above the journal's; else 0
	orphans map[string][]seam.Orphan // orphan sessions by agent: at first all that were found, then those that run

	Boxed SandboxProof // whether the kernel's sandbox works on this machine; probed once

	mu     sync.Mutex
	procs  map[string]seam.Process // running sessions by id
	found  chan struct{}           // closed when a process is added to procs; nil: no goroutine waits for it
	silent map[string]error        // sessions whose shim does not answer or is not adopted, and why
}

// Hooks are what other controllers do for a session, by its purpose.
type Hooks struct {
	// Follow reads a session's output until it is over, and reports its end.
	Follow func(ctx context.Context, m *Slot, s team.Session, proc seam.Process, atStart bool)

	// LastLook reads the agent's file once more before its process starts.
	LastLook func(ctx context.Context, m *Slot) error

	// FirstPrompt is the first prompt of a session for a channel or for the lead.
	FirstPrompt func(ctx context.Context, s team.Session) (string, error)

	// PrepareWork prepares a session for a dispatch folder.
	PrepareWork func(ctx context.Context, m *Slot, s team.Session) (PreparedLaunch, error)

	// PrivateTemp is the own folder of a session in a view.
	PrivateTemp func(session string) string

	// PoolSlot is the slot of a step that runs without an agent; nil for a session of an agent.
	PoolSlot func(s *team.Session) *Slot

	// Place gives a session its host: the name of another one, or empty for this machine. A refusal by H7 means that
	// no host takes it now; fits says whether one does later.
	Place func(ctx context.Context, m *Slot, s team.Session) (where string, fits func(*team.Team) bool, err error)

	// StartOn starts a session's process on the other host on which it is placed.
	StartOn func(ctx context.Context, m *Slot, s team.Session, epoch uint64, launch driver.Launch, box *seam.Confinement) (seam.Process,
		error)

	// BringBack fetches what a session on another host has made, when it has ended. It returns when the newest files of its run are here,
	// too.
	BringBack func(ctx context.Context, s team.Session) error

	// PrepareStep prepares a session of a step.
	PrepareStep func(ctx context.Context, m *Slot, s team.Session, run string, step workflow.StepID) (PreparedLaunch, error)

	// WithReport adds the report that a step wrote to the end of its session.
	WithReport func(t *team.Team, s team.Session, ended team.SessionEnded) team.SessionEnded
}

// New makes a controller without slots.
func New(l *loop.Loop, opts seam.Options) *Controller {
	return &Controller{
		loop: l, opts: opts, log: opts.Log, Slots: map[string]*Slot{},
		orphans: map[string][]seam.Orphan{}, procs: map[string]seam.Process{}, silent: map[string]error{},
	}
}

// CloseAll closes the connections to the sessions' processes. The processes keep running.
func (c *Controller) CloseAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.procs {
		_ = p.Close() // closing loses no data
	}
}
