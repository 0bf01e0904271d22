package questions

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// QuestionHooks are what the questions' controller does in the loop.
func (c *Controller) QuestionHooks() loop.Hooks {
	return loop.Hooks{
		OnBatch: func(changes []change.Change, _ uint64, t *loop.Touched) {
			for i := range changes {
				if body := change.As[question.Body](changes[i].Body); body != nil && body.Question != nil {
					t.Agent(body.Question.Agent)
				}
			}
		},
		Act: func(t *loop.Touched) {
			for name := range t.Agents {
				if a, m := c.loop.State().Agents[name], c.sessions.Slots[name]; a != nil && m != nil && !c.loop.Holding() {
					c.answersOf(m, a)
				}
			}
		},
		Next: func() time.Time { return c.loop.State().Questions.Deadline() },
		Due: func(now time.Time) []loop.Request {
			if at := c.loop.State().Questions.Deadline(); at.IsZero() || now.Before(at) {
				return nil
			}
			return []loop.Request{{Event: &team.Event{Actor: sessions.ByTimer, What: question.Due{}}}}
		},
	}
}
