package runs

import (
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// benchSeat is the seat of a step that has one to itself; nil for a session that names none.
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
