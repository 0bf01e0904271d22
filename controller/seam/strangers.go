package seam

import (
	"context"
)

// The journal may not match the machine: it may have been deleted and begun anew, or replaced by an
// old copy. The shims know their sessions and the epochs that they obeyed, so they are asked before
// an epoch begins. A session that the journal does not know is an orphan; nothing starts beside it.

// Orphan is what was found of a session on this machine. Until it is compared with the journal, the
// journal may know the session.
type Orphan struct {
	Session string
	Found   Found
	PID     int    // of the agent's process, if it runs
	Epoch   uint64 // the highest epoch that its shim has obeyed
	Silent  string // why the outcome cannot be read; empty: Found holds
}

// OrphanFinder is a Host or an Observer that can list the sessions with folders on this machine.
type OrphanFinder interface {
	// Orphans inspects every session except those for which over returns true.
	Orphans(ctx context.Context, over func(session string) bool) ([]Orphan, error)
}

// OrphanMover is a Host that can move the folder of a dead session aside, so that its name is free
// again. PutAside returns the new place; no data is lost.
type OrphanMover interface {
	PutAside(session string) (to string, err error)
}
