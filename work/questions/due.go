package questions

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// questionHooks are what the questions' controller does in the loop.
func (c *Controller) QuestionHooks() loop.Hooks {
	return loop.Hooks{
		Note: func(ch change.Change, t *loop.Touched) bool {
			body := change.As[question.Body](ch.Body)
			if body == nil {
				return false
			}
			if body.Question != nil {
				t.Agent(body.Question.Agent)
			}
			return true
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
