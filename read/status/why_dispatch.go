package status

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/team"
)

// WorkWords describe an agent's action in a dispatch folder.
func WorkWords(folder string, w dispatch.Action) string {
	if w.Task == 0 {
		return fmt.Sprintf("it is %s in session %s, and has to answer in %s", dispatch.Main, folder,
			dispatch.ConversationID(w.Conversation))
	}
	return fmt.Sprintf("it has task %d of %s in session %s", w.Task, dispatch.ConversationID(w.Conversation), folder)
}

// workIn reports an agent's actions in dispatch folders, what delays them, and what restricts it if
// it is the coordinator (MAIN). It runs in the loop.
func (c *Controller) workIn(t *team.Team, a *team.Agent, at time.Time) (list []leadEvidence) {
	add := func(holds bool, format string, args ...any) {
		list = append(list, leadEvidence{holds: holds, text: fmt.Sprintf(format, args...)})
	}
	for _, name := range slices.Sorted(maps.Keys(c.dispatch.FolderState.Hosted)) {
		f := t.Dispatches[name]
		for _, w := range f.State.Due() {
			if w.Agent != a.Name {
				continue
			}
			add(true, "%s", WorkWords(name, w))
			if waits := t.DispatchWaits(name, w.Key(), at); waits != "" {
				add(false, "its work in session %s waits: %s", name, waits)
			}
		}
		if f.State.Lead != a.Name {
			continue
		}
		for _, layer := range c.dispatch.LayersOf(name) {
			is := "held"
			if !layer.Holds {
				is = "not held"
			}
			add(layer.Holds, "as %s of session %s it is %s by the %s: %s", dispatch.Main, name, is, layer.Name, layer.Text)
		}
	}
	return list
}
