package questions

import (
	"time"

	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// questionHooks are what the questions' controller does in the loop.
func (c *Controller) QuestionHooks() loop.Hooks {
	return loop.Hooks{
		Note: func(ch team.Change, t *loop.Touched) bool {
			if ch.Body.Question == nil {
				return false
			}
			if q := ch.Body.Question.Question; q != nil {
				t.Agent(q.Agent)
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
