package dispatch

import (
	"context"
	"maps"
	"slices"

	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/core/team"
)

// Folders are all session folders that are known, the one begun last first. Layers are
// asked for one by one.
func (c *Controller) Folders(ctx context.Context) ([]view.FolderView, error) {
	var views []view.FolderView
	err := c.loop.View(ctx, func(t *team.Team) {
		for _, name := range slices.Sorted(maps.Keys(t.Dispatches)) {
			views = append(views, c.folderView(t, t.Dispatches[name]))
		}
	})
	slices.SortStableFunc(views, func(a, b view.FolderView) int { return b.Session.Began.Compare(a.Session.Began) })
	return views, err
}

// folderView runs in the loop.
func (c *Controller) folderView(t *team.Team, f *team.Dispatch) view.FolderView {
	view := view.FolderView{Name: f.Name, Path: f.Path, Gone: f.Gone, Read: f.Read, Session: f.State, State: f.State.State()}
	if f.Gone {
		return view
	}
	for _, w := range f.State.Due() {
		if why := t.DispatchWaits(f.Name, w.Key(), c.loop.Now()); why != "" {
			if view.Waits == nil {
				view.Waits = map[string]string{}
			}
			view.Waits[w.Key()] = w.Agent + ": " + why
		}
	}
	return view
}

// Folder is one of them, with what holds its MAIN. The error is a *team.Unknown where there is none.
func (c *Controller) Folder(ctx context.Context, name string) (view.FolderView, error) {
	var view view.FolderView
	var unknown error
	if err := c.loop.View(ctx, func(t *team.Team) {
		f := t.Dispatches[name]
		if f == nil {
			unknown = &team.Unknown{What: "session", Name: name, Known: slices.Sorted(maps.Keys(t.Dispatches))}
			return
		}
		view = c.folderView(t, f)
	}); err != nil {
		return view, err
	}
	if unknown != nil || view.Gone {
		return view, unknown
	}
	view.Layers = c.LayersOf(name)
	return view, nil
}
