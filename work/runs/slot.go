package runs

import (
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// PoolSlot is the slot of a session for a step without an agent; nil if the session is for no step.
func (c *Controller) PoolSlot(s *team.Session) *sessions.Slot {
	run, step, ok := team.StepOf(s.For)
	if !ok {
		return nil
	}
	r := c.RunMember(run)
	if m := r.Slots[step]; m != nil {
		return m
	}
	d, ok := c.opts.Drivers[sessions.PoolDriver]
	if !ok {
		d = sessions.MissingDriver{}
	}
	m := sessions.NewSlot(&config.Agent{Name: step + "@" + run, Driver: sessions.PoolDriver, Grace: config.GraceDefault}, d)
	m.Run, m.Step = run, workflow.StepID(step)
	r.Slots[step] = m
	return m
}
