package questions

import (
	"context"

	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/team"
)

// Inbox is everything that waits for a person, the oldest first.
func (c *Controller) Inbox(ctx context.Context) ([]view.InboxItem, error) {
	items := []view.InboxItem{}
	err := c.View(ctx, func(t *team.Team) {
		for _, id := range t.RunIDs() {
			r := t.Runs[id]
			for _, todo := range t.RunActions(id, c.Now()) {
				if todo.Do != team.AskThem {
					continue
				}
				items = append(items, runs.InboxItem(r, todo.Step.Lease.Step))
			}
		}
		for _, q := range t.Questions.Open("") {
			items = append(items, c.inboxQuestion(t, q))
		}
		for _, name := range t.Names() {
			if a := t.Agents[name]; !a.Control.GaveUp.IsZero() && !a.Removed {
				items = append(items, view.InboxItem{
					Kind: view.InboxFailed, Agent: name, Since: a.Control.GaveUp, Why: a.Control.Desired.Note, Artifacts: []string{}, Logs: []string{},
				})
			}
		}
	})
	for _, item := range items {
		if item.Question != nil {
			item.Question.Hints = view.Some(HintsOf(item.Question))
		}
	}
	view.ByAge(items)
	return items, err
}
