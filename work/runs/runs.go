package runs

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// Controller carries out the steps of runs.
type Controller struct {
	loop     *loop.Loop
	sessions *sessions.Controller
	opts     outside.Options
	log      *slog.Logger

	// Only the loop's goroutine reads or writes it.
	Live     map[string]*runMember // of runs that are not archived
	starting map[string]bool       // runs whose folder is made for an order that is not decided yet

	snapshots map[string]time.Time // when the folder of a task at work is kept next
	follow    follower

	fetchStopped atomic.Pointer[FetchStop] // nil: tasks.fetch goes on

	sizes folderSizes

	taking sync.Mutex // the files of one step at a time: two may have the same name

	undoing sync.Mutex // one landing at a time is taken back: the journal is read first, and then a branch is moved or a task begins
	answers sync.Mutex // one answer of a person at a time: it is checked, kept in its file, then decided; held while files are looked at
}

// New returns the controller of runs.
func New(l *loop.Loop, opts outside.Options, sessions *sessions.Controller) *Controller {
	return &Controller{
		loop: l, sessions: sessions, opts: opts, log: opts.Log, Live: map[string]*runMember{},
		starting: map[string]bool{}, snapshots: map[string]time.Time{}, follow: follower{open: map[string]bool{}},
	}
}
