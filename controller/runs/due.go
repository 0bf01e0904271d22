package runs

import (
	"time"

	"github.com/fairlead-dev/fairlead/controller/sessions"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/team"
)

// RunHooks are the functions of the controller that the loop calls.
func (c *RunController) RunHooks() loop.Hooks {
	return loop.Hooks{
		Act: func(t *loop.Touched) {
			for id := range t.Runs {
				c.errandsOfRun(id)
			}
		},
		Next: func() (next time.Time) {
			for _, at := range c.snapshots {
				next = machine.Earliest(next, at)
			}
			for id := range c.State().Runs {
				next = machine.Earliest(next, c.State().DeadlineRun(id))
			}
			return next
		},
		Due: func(now time.Time) []loop.Request {
			takeSnapshots(c, now)
			var batch []loop.Request
			for _, id := range c.State().RunIDs() {
				if at := c.State().DeadlineRun(id); !at.IsZero() && !now.Before(at) {
					batch = append(batch, loop.Request{Event: &team.Event{Actor: sessions.ByTimer, Run: id, What: team.TimerFired{}}})
				}
			}
			return batch
		},
	}
}
