package view

import (
	"github.com/fairlead-dev/fairlead/core/dispatch"
)

// FolderView is what Fairlead knows about a dispatch folder. The folder's history and conversations
// are not in it: clients read them from the folder, without a daemon.
type FolderView struct {
	Name    string
	Path    string
	Gone    bool              // the folder no longer exists
	Read    int64             // bytes of its history that are recorded in the journal
	Session dispatch.Dispatch // state after Read bytes
	State   string            // who is in charge: MAIN, QUEUE or an agent
	Waits   map[string]string // by work id: why an agent of the team cannot begin
	Layers  []Layer           // host fairlead: what restricts MAIN in its last session
}

// LayerGit is the name of the layer that says why an agent's commit fails in its workspace.
const LayerGit = "git"

// Layer is one of the mechanisms that restrict an agent.
type Layer struct {
	Name  string `json:"name"` // rules, bounds, sandbox, git, check
	Holds bool   `json:"holds"`
	Text  string `json:"text"`
}
