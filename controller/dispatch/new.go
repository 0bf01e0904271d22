package dispatch

import (
	"log/slog"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/loop"
)

// DispatchController follows dispatch folders and lets agents do what they ask for.
type DispatchController struct {
	*loop.Loop
	Orders
	sessions *sessions.SessionController
	opts     seam.Options
	log      *slog.Logger

	FolderState folderSide // what is kept of folders beside the team
}

// New makes the controller of the dispatch folders.
func New(l *loop.Loop, opts seam.Options, sessions *sessions.SessionController) *DispatchController {
	return &DispatchController{Loop: l, Orders: NewOrders(opts.Config), sessions: sessions, opts: opts, log: opts.Log, FolderState: newFolderSide()}
}
