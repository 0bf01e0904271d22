package api

import (
	"context"

	"github.com/fairlead-dev/fairlead/engine"
	"github.com/fairlead-dev/fairlead/team"
)

// Folders are those that a test has had taken in.
func (f *fake) Folders(context.Context) ([]engine.FolderView, error) {
	return f.folders, f.answer()
}

func (f *fake) Folder(_ context.Context, name string) (engine.FolderView, error) {
	for _, view := range f.folders {
		if view.Name == name {
			return view, f.answer()
		}
	}
	return engine.FolderView{}, &team.Unknown{What: "session", Name: name}
}
