package agents

import (
	"context"

	"github.com/fairlead-dev/fairlead/team"
)

// beginActions starts the actions that the agent's state asks for and that have not begun. It is
// called after every change, so that no other code has to remember to call it.
func (e *Controller) beginActions(name string) {
	a, m := e.State().Agents[name], e.sessions.Slots[name]
	if a == nil || m == nil || e.Holding() {
		return
	}
	for todo := range e.State().Actions(a) {
		if todo.Do == team.WriteFile {
			e.writeFile(e.Files[name], a)
			continue
		}
		if m.Begun(todo.Session.ID, todo.Key) {
			continue
		}
		switch s := todo.Session; todo.Do {
		case team.StartSession:
			e.Go(func(ctx context.Context) { e.sessions.StartSession(ctx, m, s) })
		case team.EndSession:
			e.Go(func(ctx context.Context) { e.sessions.EndSession(ctx, m, s) })
		default:
			panic("agents: unknown action: " + string(todo.Do))
		}
	}
	e.writeNext()
}
