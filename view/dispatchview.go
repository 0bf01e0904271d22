package view

import (
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

// FolderView is what the engine knows of a session folder. What stands in the folder itself (its history, its
// conversations) whoever shows it reads there: the folder is the truth, and needs no engine.
type FolderView struct {
	Name    string
	Path    string
	Gone    bool              // the folder is not there any more
	Read    int64             // bytes of its history that are in the journal
	Session dispatch.Dispatch // as far as it was taken in
	State   string            // who is in charge: MAIN, QUEUE or an agent
	Waits   map[string]string // by work: what keeps an agent of ours from beginning
	Layers  []Layer           // host fairlead: what holds in MAIN's last session
}
