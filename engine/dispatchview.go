package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/team"
)

// FolderView is what the engine knows of a session folder. What stands in the folder itself (its history, its
// conversations) whoever shows it reads there: the folder is the truth, and needs no engine.
type FolderView struct {
	Name    string
	Path    string
	Gone    bool              // the folder is not there any more
	Read    int64             // bytes of its history that are in the journal
	Session dispatch.Session  // as far as it was taken in
	State   string            // who is in charge: MAIN, QUEUE or an agent
	Waits   map[string]string // by work: what keeps an agent of ours from beginning
	Layers  []Layer           // host fairlead: what holds in MAIN's last session
}

// Folders are all session folders that are known, the one begun last first. Layers are
// asked for one by one.
func (e *Engine) Folders(ctx context.Context) ([]FolderView, error) {
	var views []FolderView
	err := e.View(ctx, func(t *team.Team) {
		for _, name := range slices.Sorted(maps.Keys(t.Folders)) {
			views = append(views, e.folderView(t, t.Folders[name]))
		}
	})
	slices.SortStableFunc(views, func(a, b FolderView) int { return b.Session.Began.Compare(a.Session.Began) })
	return views, err
}

// folderView runs in the loop.
func (e *Engine) folderView(t *team.Team, f *team.Folder) FolderView {
	view := FolderView{Name: f.Name, Path: f.Path, Gone: f.Gone, Read: f.Read, Session: f.Session, State: f.Session.State()}
	if f.Gone {
		return view
	}
	for _, w := range f.Session.Due() {
		if why := t.WorkWaits(f.Name, w.Key(), e.Now()); why != "" {
			if view.Waits == nil {
				view.Waits = map[string]string{}
			}
			view.Waits[w.Key()] = w.Agent + ": " + why
		}
	}
	return view
}

// Folder is one of them, with what holds its MAIN. The error is a *team.Unknown where there is none.
func (e *Engine) Folder(ctx context.Context, name string) (FolderView, error) {
	var view FolderView
	var unknown error
	if err := e.View(ctx, func(t *team.Team) {
		f := t.Folders[name]
		if f == nil {
			unknown = &team.Unknown{What: "session", Name: name, Known: slices.Sorted(maps.Keys(t.Folders))}
			return
		}
		view = e.folderView(t, f)
	}); err != nil {
		return view, err
	}
	if unknown != nil || view.Gone {
		return view, unknown
	}
	view.Layers = e.layersOf(name)
	return view, nil
}
