package app

import (
	"maps"
	"slices"

	"github.com/fairlead-dev/fairlead/read/status"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team"
)

// dispatchSession returns the session in which an agent carries out an action of a dispatch folder.
func (p *planner) dispatchSession(a *team.Agent) (view.PlanStep, bool) {
	for _, name := range slices.Sorted(maps.Keys(p.team.Dispatches)) {
		f := p.team.Dispatches[name]
		if f.Gone {
			continue
		}
		for _, w := range f.State.Due() {
			if _, ended := f.Ends[w.Key()]; w.Agent == a.Name && !ended && p.team.DispatchWaits(name, w.Key(), p.at) == "" {
				return p.next(a, control.Work, team.ForDispatch(name, w.Key()), status.WorkWords(name, w)), true
			}
		}
	}
	return view.PlanStep{}, false
}
