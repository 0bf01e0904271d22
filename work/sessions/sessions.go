package sessions

import (
	"log/slog"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// Controller has the slots and the processes of sessions, and ends them.
type Controller struct {
	loop *loop.Loop
	opts outside.Options
	log  *slog.Logger

	// Only the loop's goroutine reads or writes these.
	Slots   map[string]*Slot                // by the agent's name
	behind  uint64                          // the highest epoch that a shim has obeyed, if it is above the journal's; else 0
	orphans map[string][]sessionhost.Orphan // orphan sessions by agent: at first all that were found, then those that run

	Boxed SandboxProof // whether the kernel's sandbox works on this machine; probed once

	mu     sync.Mutex
	procs  map[string]sessionhost.Process // running sessions by id
	found  chan struct{}                  // closed when a process is added to procs; nil: no goroutine waits for it
	silent map[string]error               // sessions whose shim does not answer or is not adopted, and why
	waits  map[string]string              // sessions that wait until their machine has room, and why

	followed time.Time // when the last of them went on
}

// New makes a controller without slots.
func New(l *loop.Loop, opts outside.Options) *Controller {
	return &Controller{
		loop: l, opts: opts, log: opts.Log, Slots: map[string]*Slot{},
		orphans: map[string][]sessionhost.Orphan{}, procs: map[string]sessionhost.Process{}, silent: map[string]error{},
		waits: map[string]string{},
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
