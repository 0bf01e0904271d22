package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// Change is one stored fact. The caller of Append sets everything except Seq, Version and Hash,
// which the store sets.
type Change struct {
	Seq     uint64          `json:"seq"`     // place in the total order of the store, from 1
	Version uint64          `json:"version"` // place in the entity's own stream, from 1
	Time    time.Time       `json:"time"`    // UTC, nanoseconds
	Machine string          `json:"machine"` // name of the state machine, such as control, session or team
	Entity  string          `json:"entity"`  // MACHINE/NAME, as in control/coder
	Row     string          `json:"row"`     // the rule that made it (SPEC id)
	From    string          `json:"from"`
	To      string          `json:"to"`
	Trigger string          `json:"trigger"`
	Actor   change.Actor    `json:"actor"`
	Data    json.RawMessage `json:"data,omitempty"`  // what Apply needs; one JSON value, or nothing, as the caller of Append ensures
	Cause   uint64          `json:"cause,omitempty"` // Seq of the change that led to this one; 0: none
	Hash    Hash            `json:"hash"`            // SHA-256 over the previous change's hash and this change

	checked bool // it keeps the limits; see Check
}

// Hash is one link of the chain; it prints as 64 hexadecimal digits.
type Hash [32]byte

// Expect is a condition of an append: the entity's stream must end at this version.
type Expect struct {
	Entity  string // or [Whole]
	Version uint64 // 0: the entity has no change yet
}

// Whole stands for the store itself in an expectation: its version is its last Seq. A caller with
// this expectation must have read all changes.
const Whole = "*"

// Conflict is returned if an expectation fails; nothing was appended.
type Conflict struct {
	Entity    string
	Want, Has uint64
}

func (c *Conflict) Error() string {
	if c.Entity == Whole {
		return fmt.Sprintf("append to journal: it ends at change %d, not %d: another process wrote to it; read again and decide again",
			c.Has, c.Want)
	}
	return fmt.Sprintf("append to journal: %s is at version %d, not %d: another process wrote to it; read again and decide again", c.Entity,
		c.Has, c.Want)
}

// Query selects a part of the journal.
type Query struct {
	After  uint64 // only changes with a greater Seq
	Until  uint64 // none with a greater Seq; 0: up to the current end
	Entity string // only this entity; empty: all
}

// Snapshot is a state as of one Seq, so that a start need not read everything. It is an
// optimization: the changes alone give the same state.
type Snapshot struct {
	Seq    uint64
	Hash   Hash   // of the change Seq, so that a snapshot of another history is rejected
	Format string // writer and format of Data; a reader that does not know it ignores the snapshot
	Data   []byte
}

// Journal is the store. It is safe for concurrent use, also by several processes if the backend
// supports them.
type Journal interface {
	// Append stores a batch at the end, all of it or nothing, and syncs it to disk before it returns.
	// The changes get consecutive Seqs; it returns the last one. The error is a *Conflict if an
	// expectation failed.
	Append(ctx context.Context, batch []Change, expect ...Expect) (last uint64, err error)

	// Read yields the changes that the query selects, in order. After an error it yields nothing more.
	Read(ctx context.Context, q Query) iter.Seq2[Change, error]

	// Watch is a Read that does not end: it yields the existing changes and then new ones, each once,
	// until ctx ends (without an error).
	Watch(ctx context.Context, q Query) iter.Seq2[Change, error]

	// Head returns the last Seq and its hash; 0 and a zero hash for an empty journal.
	Head(ctx context.Context) (seq uint64, hash Hash, err error)

	// SaveSnapshot stores a snapshot; Latest returns the newest stored one, or ok = false.
	SaveSnapshot(ctx context.Context, s Snapshot) error
	Latest(ctx context.Context) (s Snapshot, ok bool, err error)

	Close() error
}
