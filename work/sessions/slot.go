package sessions

import (
	"context"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// Slot is where a session runs: an agent's slot, or the slot of a run's step that is a wrapper or a
// command.
type Slot struct {
	Conf    *config.Agent
	Driver  driver.Driver
	Run     string          // the run of the step; empty for an agent's slot
	Step    workflow.StepID // the step of that run
	N       int             // the number of an agent's slot
	Steers  bool            // Capabilities.Steers of its agent; kept, because asking the driver may read a file
	Resumes bool            // Capabilities.Resumes of its driver; kept for the same reason
	session string          // the session whose actions Doing holds
	Doing   map[string]bool // actions that were started, by key
	extra   map[int]*Slot   // of slot 0: the agent's other slots, made when they are first used
}

// NewSlot makes the slot of an agent.
func NewSlot(conf *config.Agent, d driver.Driver) *Slot {
	can := d.Capabilities(Known(*conf), driver.Turn)
	return &Slot{Conf: conf, Driver: d, Steers: can.Steers, Resumes: can.Resumes}
}

// At returns another slot of the agent of slot 0. It is called in the loop.
func (m *Slot) At(n int) *Slot {
	if n == 0 {
		return m
	}
	if m.extra == nil {
		m.extra = map[int]*Slot{}
	}
	if m.extra[n] == nil {
		m.extra[n] = &Slot{Conf: m.Conf, Driver: m.Driver, N: n, Steers: m.Steers, Resumes: m.Resumes}
	}
	return m.extra[n]
}

// With returns the slot of the agent that has a session; slot 0 if none has it. It is called in the loop.
func (m *Slot) With(t *team.Team, session string) *Slot {
	if a := t.Agents[m.Conf.Name]; m.Run == "" && a != nil {
		if s := a.Open(session); s != nil {
			return m.At(s.Slot)
		}
	}
	return m
}

// Begun records that an action of a session has begun, and reports whether it had begun before.
func (m *Slot) Begun(session, key string) bool {
	if m.session != session {
		m.session = session
		clear(m.Doing) // drop the actions of the previous session
	}
	if m.Doing == nil {
		m.Doing = map[string]bool{}
	}
	before := m.Doing[key]
	m.Doing[key] = true
	return before
}

// Proc is the process of a running session, or nil.
func (c *Controller) Proc(session string) sessionhost.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.procs[session]
}

// SetProc notes the process of a session; nil removes it.
func (c *Controller) SetProc(session string, p sessionhost.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.silent, session)
	if p == nil {
		delete(c.procs, session)
		return
	}
	c.procs[session] = p
	if c.found != nil {
		close(c.found)
		c.found = nil
	}
}

// AwaitProc is Proc, and waits for a process that is not known yet; nil when ctx ended first.
func (c *Controller) AwaitProc(ctx context.Context, session string) sessionhost.Process {
	for {
		c.mu.Lock()
		p := c.procs[session]
		if c.found == nil {
			c.found = make(chan struct{})
		}
		found := c.found
		c.mu.Unlock()
		if p != nil {
			return p
		}
		select {
		case <-found:
		case <-ctx.Done():
			return nil
		}
	}
}

// Event returns an event about this slot.
func (m *Slot) Event(by change.Actor, what any) *team.Event {
	if m.Run != "" {
		ev := loop.EventBy(by, "", what)
		ev.Run = m.Run
		return ev
	}
	return loop.EventBy(by, m.Conf.Name, what)
}

// SubmitOf submits an event about a slot and returns the Seq of its last change.
func (c *Controller) SubmitOf(ctx context.Context, by change.Actor, m *Slot, what any) (uint64, error) {
	return c.loop.Do(ctx, loop.Request{Event: m.Event(by, what)})
}

// Open returns the session that is open in this slot, or nil.
func (m *Slot) Open(t *team.Team) *team.Session {
	if m.Run != "" {
		return t.Pool.Sessions[m.Run+"/"+string(m.Step)]
	}
	return t.Agents[m.Conf.Name].InSlot(m.N)
}

// MayStart is the last check before the process of a session in this slot starts. It is called in the loop.
func (m *Slot) MayStart(t *team.Team, session string, at time.Time) (bool, string) {
	if m.Run != "" {
		return t.MayStartRun(m.Run, session, at)
	}
	return t.MayStart(m.Conf.Name, session, at)
}

// PoolDriver is the driver of a step that runs without an agent.
const PoolDriver = "exec"

// StepParts splits the name of a step's own session, for example build@f8c1.
func StepParts(name string) (run, step string, ok bool) {
	step, run, ok = strings.Cut(name, "@")
	return run, step, ok && run != "" && step != ""
}

// pastStep reports whether the journal says that a step's own session is over.
func (c *Controller) pastStep(run, step string, n uint64, session string) bool {
	if s := c.loop.State().Pool.Sessions[run+"/"+step]; s != nil && s.ID == session {
		return false
	}
	if _, gone := c.loop.State().Archive[run]; gone {
		return true
	}
	r := c.loop.State().Runs[run]
	if r == nil {
		return false
	}
	_, p, known := r.Find(workflow.StepID(step))
	return !known || n <= p.N // a step that was removed from the workflow has no open sessions
}
