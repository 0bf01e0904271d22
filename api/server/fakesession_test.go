package server

import (
	"context"

	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

// Folders are those that a test has had taken in.
func (f *fake) Folders(context.Context) ([]view.FolderView, error) {
	return f.folders, f.answer()
}

func (f *fake) Folder(_ context.Context, name string) (view.FolderView, error) {
	for _, view := range f.folders {
		if view.Name == name {
			return view, f.answer()
		}
	}
	return view.FolderView{}, &team.Unknown{What: "session", Name: name}
}
