package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// Actor is who made a change happen.
type Actor struct {
	Kind string `json:"kind"` // human, agent or engine
	ID   string `json:"id"`   // who exactly: a login name, an agent's name, a part of the engine
}

// Change is one fact, as it is kept. Whoever appends fills everything but Seq,
// Version and Hash; the store gives those.
type Change struct {
	Seq     uint64          `json:"seq"`     // place in the total order of the store, from 1
	Version uint64          `json:"version"` // place in the entity's own stream, from 1
	Time    time.Time       `json:"time"`    // UTC, nanoseconds
	Machine string          `json:"machine"` // control, presence, dispatch, turn, workflow, session or team
	Entity  string          `json:"entity"`  // MACHINE/NAME, as in control/coder
	Row     string          `json:"row"`     // the rule that made it (SPEC id)
	From    string          `json:"from"`
	To      string          `json:"to"`
	Trigger string          `json:"trigger"`
	Actor   Actor           `json:"actor"`
	Data    json.RawMessage `json:"data,omitempty"`  // what Apply needs; one JSON value, or nothing: whoever appends sees to that
	Cause   uint64          `json:"cause,omitempty"` // Seq of the change that led to this one; 0 where there is none
	Hash    Hash            `json:"hash"`            // SHA-256 over the previous change's hash and this change
}

// Hash is one link of the chain; it prints as 64 hexadecimal digits.
type Hash [32]byte

// Expect is a condition of an append: the entity's stream must end at this version.
type Expect struct {
	Entity  string // or [Whole]
	Version uint64 // 0: the entity has no change yet
}

// Whole stands for the store itself in an expectation: its version is its last Seq. Who
// expects it has read everything that there is.
const Whole = "*"

// Conflict is returned where an expectation does not hold; nothing was appended.
type Conflict struct {
	Entity    string
	Want, Has uint64
}

func (c *Conflict) Error() string {
	if c.Entity == Whole {
		return fmt.Sprintf("append to journal: it ends at change %d, not %d: somebody else wrote it; read again and decide anew", c.Has, c.Want)
	}
	return fmt.Sprintf("append to journal: %s is at version %d, not %d: somebody else wrote it; read again and decide anew", c.Entity, c.Has, c.Want)
}

// Query says which part of the journal is wanted.
type Query struct {
	After  uint64 // only changes with a greater Seq
	Until  uint64 // none with a greater Seq; 0: to the end as it is now
	Entity string // only this entity; empty: all
}

// Snapshot is state as of one Seq, so that a start need not read everything.
// It is an optimisation: without it the changes alone give the same state.
type Snapshot struct {
	Seq    uint64
	Hash   Hash   // of the change Seq, so that a snapshot of another history is not taken
	Format string // who wrote Data and how; a reader that does not know it ignores the snapshot
	Data   []byte
}

// Journal is the store. All methods may be called from many goroutines, and by
// many processes where the backend allows it: nothing here assumes one.
type Journal interface {
	// Append puts a batch at the end: all of it or nothing, synced to disk before
	// it returns. The changes get consecutive Seqs; the last one is returned.
	// The error is a *Conflict where an expectation failed.
	Append(ctx context.Context, batch []Change, expect ...Expect) (last uint64, err error)

	// Read yields the changes that the query names, in order. After an error it yields nothing more.
	Read(ctx context.Context, q Query) iter.Seq2[Change, error]

	// Watch is Read that does not end: it yields what there is, then what comes,
	// each change once, until ctx ends (then without an error).
	Watch(ctx context.Context, q Query) iter.Seq2[Change, error]

	// Head is the last Seq and its hash; 0 and a zero hash for an empty journal.
	Head(ctx context.Context) (seq uint64, hash Hash, err error)

	// SaveSnapshot keeps a snapshot; Latest gives the newest one that was kept, or ok = false.
	SaveSnapshot(ctx context.Context, s Snapshot) error
	Latest(ctx context.Context) (s Snapshot, ok bool, err error)

	Close() error
}
