package sessions

import (
	"github.com/fairlead-dev/fairlead/controller/seam"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/machine/workflow"
)

// member is a place where a session runs: an agent's, or that of one step of a run, which a wrapper or
// a command plays.
type Slot struct {
	Conf    *config.Agent
	Driver  driver.Driver
	Run     string          // the run whose step has this slot; empty: it is an agent's
	Step    workflow.StepID // of that run
	session string          // whose actions doing holds
	Doing   map[string]bool // actions that were started, by key
}

func NewSlot(conf *config.Agent, d driver.Driver) *Slot {
	return &Slot{Conf: conf, Driver: d, Doing: map[string]bool{}}
}

// begun notes that an errand of a session was begun, and says whether it was before.
func (m *Slot) Begun(session, key string) bool {
	if m.session != session {
		m.session = session
		clear(m.Doing) // those of the session before are over
	}
	before := m.Doing[key]
	m.Doing[key] = true
	return before
}

func (e *Controller) Proc(session string) seam.Process {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.procs[session]
}

func (e *Controller) SetProc(session string, p seam.Process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.silent, session)
	if p == nil {
		delete(e.procs, session)
		return
	}
	e.procs[session] = p
}
