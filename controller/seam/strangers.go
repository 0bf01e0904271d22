package seam

import (
	"context"
)

// A journal may be another one than the world remembers: its file was taken away and a new
// one begun, or an old copy was put back. Shims are the witnesses: they know which epoch
// they obeyed, and for which session. So they are asked before an epoch begins, and a session
// that the journal does not know is a stranger, beside whom nothing is started.

// Trace is what is left of a session on this machine, whether the journal knows it or not.
type Trace struct {
	Session string
	Found   Found
	PID     int    // of the agent's process, where it runs
	Epoch   uint64 // the highest that its shim has obeyed
	Silent  string // why nobody can say what became of it; empty: Found says
}

// Tracker is a Host, or an Onlooker, that can say which sessions have left traces.
type Tracker interface {
	// Traces looks at every session but those that over names: they are long at rest.
	Traces(ctx context.Context, over func(session string) bool) ([]Trace, error)
}

// Shelf is a Host that can put what is left of a dead session where its name is free again.
// Nothing of it is lost. It says where it lies now.
type Shelf interface {
	PutAside(session string) (to string, err error)
}
