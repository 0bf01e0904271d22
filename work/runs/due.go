package runs

import (
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// runOf is the run that a change concerns; empty: it concerns none.
func runOf(ch *change.Change) string {
	if key, isRun := strings.CutPrefix(ch.Entity, "run/"); isRun {
		id, _, _ := strings.Cut(key, "/")
		return id
	}
	if s := change.As[team.Session](ch.Body); s != nil { // perhaps an agent does a step in it
		if id, _, isStep := team.StepOf(s.For); isStep {
			return id
		}
	}
	return ""
}

// RunHooks are the functions of the controller that the loop calls.
func (c *Controller) RunHooks() loop.Hooks {
	return loop.Hooks{
		OnBatch: func(changes []change.Change, _ uint64, t *loop.Touched) {
			for i := range changes {
				if id := runOf(&changes[i]); id != "" {
					t.Run(id)
				}
			}
		},
		Act: func(t *loop.Touched) {
			for id := range t.Runs {
				c.actOnRun(id)
			}
		},
		Next: func() (next time.Time) {
			for _, at := range c.snapshots {
				next = table.Earliest(next, at)
			}
			for id := range c.loop.State().Runs {
				next = table.Earliest(next, c.loop.State().DeadlineRun(id))
			}
			return next
		},
		Due: func(now time.Time) []loop.Request {
			c.takeSnapshots(now)
			var batch []loop.Request
			for _, id := range c.loop.State().RunIDs() {
				if at := c.loop.State().DeadlineRun(id); !at.IsZero() && !now.Before(at) {
					batch = append(batch, loop.Request{Event: &team.Event{Actor: sessions.ByTimer, Run: id, What: team.TimerFired{}}})
				}
			}
			return batch
		},
	}
}
