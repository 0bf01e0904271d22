package agents

import (
	"context"

	"github.com/fairlead-dev/fairlead/team"
)

// beginActions starts the actions that the agent's state asks for and that have not begun. It is
// called after every change, so that no other code has to remember to call it.
func (c *Controller) beginActions(name string) {
	a, m := c.State().Agents[name], c.sessions.Slots[name]
	if a == nil || m == nil || c.Holding() {
		return
	}
	for todo := range c.State().Actions(a) {
		if todo.Do == team.WriteFile {
			c.writeFile(c.Files[name], a)
			continue
		}
		m := m.At(todo.Session.Slot)
		if m.Begun(todo.Session.ID, todo.Key) {
			continue
		}
		switch s := todo.Session; todo.Do {
		case team.StartSession:
			c.Go(func(ctx context.Context) { c.sessions.StartSession(ctx, m, s) })
		case team.EndSession:
			c.Go(func(ctx context.Context) { c.sessions.EndSession(ctx, m, s) })
		default:
			panic("agents: unknown action: " + string(todo.Do))
		}
	}
	c.writeNext()
}
