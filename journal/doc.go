// Package journal is the one history: what happened, in order, once.
//
// Picture a ledger with numbered lines. Many hands may write, but a line goes in
// only at the end, only whole, and only with the lines it belongs to; no line is
// ever changed or taken out. Every line carries a seal made from its own words
// and the seal of the line before, so that a line that was altered, dropped or
// slipped in shows. Everything else that Fairlead knows is read out of this ledger.
//
// # Change, stream, order
//
// A [Change] is one line. Its Seq counts all changes of a store from 1 without a
// gap: that is the total order. Its Version counts the changes of one entity
// (control/coder) from 1 without a gap: that is the entity's stream. A batch is
// appended whole or not at all, and its changes have consecutive Seqs. An [Expect]
// ties a batch to the version a stream had when the decision was made, or to the end
// of the whole store; where somebody was faster the answer is a [*Conflict] and nothing is stored.
//
// # Canonical bytes and the chain
//
// Hash is SHA-256 over the hash of the change before (32 zero bytes for the
// first) and the canonical bytes of the change. Those are, integers big-endian:
//
//	1 byte    format, now 1
//	8 bytes   seq
//	8 bytes   version
//	8 bytes   time, nanoseconds since 1970-01-01 UTC, two's complement
//	8 bytes   cause
//	9 times   4 bytes length and so many bytes: machine, entity, row, from, to,
//	          trigger, actor.kind, actor.id, data
//
// Every field has a length, so two different changes never have the same bytes.
// Data is hashed as it was appended, byte for byte: whoever writes it out and
// wants it checked elsewhere must neither reformat nor HTML-escape it. Backends
// store changes as they like; the canonical bytes are never stored, only hashed.
//
// # Versions
//
// A later format gets a new first byte and leaves the bytes of older changes as
// they are: a chain may change its format in the middle and stays one chain.
// States, rows and triggers are stored as text and never interpreted here, so an
// old journal does not depend on today's tables. A store that was written by a
// newer Fairlead is refused with words, never guessed at.
//
// # Snapshots
//
// A [Snapshot] is somebody's state as of one Seq. It names the hash of that change,
// so that one which belongs to another history is not taken: SaveSnapshot refuses
// it, Latest passes over it. A few are kept, the newest that fits is given. The
// journal does not know what is in it; losing all of them loses time, not facts.
//
// # Torn tails
//
// Append returns once the batch is synced. If the machine dies before, the batch is
// there whole or not at all after the restart: what was being written and has no
// complete end is a torn tail and is dropped by the backend when it opens, without
// words, because nobody was told that it was stored. Where Append failed with an error
// that is neither [*Conflict] nor [*Refused], the batch may be in either state:
// read Head and what follows before trying again. Damage before the tail is
// another thing: Read yields a [*Broken] that names the first bad Seq, and nothing
// is repaired or deleted by itself.
//
// # Past one machine
//
// The interface is cut so that a NATS JetStream stream fits beneath it:
//
//	Append        one atomic batch (headers Nats-Batch-Id, -Sequence, -Commit), at most
//	              [BatchChangesMax] messages; the subject is the entity, control/coder is
//	              J.control.coder, a dot in a name is written %2E. Expect is
//	              Nats-Expected-Last-Subject-Sequence on the entity's first message; the
//	              stream sequence of version n is kept beside it; [Whole] is
//	              Nats-Expected-Last-Sequence. Error 10071 is *Conflict.
//	Seq           the stream sequence; Version and Hash travel as headers, which is safe
//	              because Nats-Expected-Last-Sequence pins the end that they were made for
//	Read          an ordered consumer from After+1, filtered by subject, up to Until
//	Watch         the same consumer without an end
//	Head          the last message of the stream
//	SaveSnapshot  an object named by Seq in an object store beside the stream
//	Latest        the newest object whose Hash is that of its Seq
//
// The promise: what Read yields is what was appended, in that order and byte for
// byte, or an error that says where it is not.
package journal
