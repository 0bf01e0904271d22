package questions

import (
	"context"

	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/runs"

	"github.com/fairlead-dev/fairlead/core/team"
)

// Waiting is what waits for a person: steps of runs, questions of agents, and what failed and was not
// started again. It is not sorted.
func (c *Controller) Waiting(ctx context.Context) ([]view.InboxItem, error) {
	items := []view.InboxItem{}
	var asked []runs.StepAsked
	err := c.loop.View(ctx, func(t *team.Team) {
		asked = runs.Asked(t, c.loop.Now())
		for _, q := range t.Questions.Open("") {
			items = append(items, c.inboxQuestion(t, q))
		}
		for _, name := range t.Names() {
			a := t.Agents[name]
			since, why := a.Control.GaveUp, a.Control.Desired.Note
			if a.Control.Overwritten() {
				since, why = a.Control.Desired.At, view.Overwritten(a.Control.Desired.State)
			}
			if since.IsZero() || a.Removed {
				continue
			}
			item := view.InboxItem{
				ID: "agent/" + name, Kind: view.InboxFailed, Agent: name, Since: since, Why: why,
				Blocks: []string{}, Artifacts: []string{}, Logs: []string{},
			}
			for i := range a.Past {
				if a.Past[i].For == team.ForControl {
					item.Session = a.Past[i].ID
				}
			}
			items = append(items, item)
		}
	})
	for _, item := range items {
		if item.Question != nil {
			item.Question.Hints = view.Some(HintsOf(item.Question))
		}
	}
	for _, one := range asked {
		items = append(items, one.WithFiles())
	}
	return items, err
}
