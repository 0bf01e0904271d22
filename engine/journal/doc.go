// Package journal stores the history of a team: all changes, in order.
//
// Changes are only appended, in whole batches, and never modified or removed. Each change has a hash
// over its own content and the hash of the previous change, so that a change that was altered,
// removed or inserted is detected. The rest of Fairlead's state is derived from the journal.
//
// # Change, stream, order
//
// A [Change] is one entry. Its Seq counts all changes of a store from 1 without a gap: that is the
// total order. Its Version counts the changes of one entity (control/coder) from 1 without a gap:
// that is the entity's stream. A batch is appended as a whole or not at all, and its changes have
// consecutive Seqs. An [Expect] ties a batch to the version that a stream had when the decision was
// made, or to the end of the whole store. If another writer was faster, the error is a [*Conflict]
// and nothing is stored.
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
// Every field has a length, so two different changes never have the same bytes. Data is hashed byte
// for byte as it was appended: an export that is to be verified elsewhere must neither reformat nor
// HTML-escape it. Backends may store changes in any form; the canonical bytes are only hashed, never
// stored.
//
// # Versions
//
// A later format gets a new first byte and leaves the bytes of older changes as they are: the format
// may change in the middle of a chain. States, rows and triggers are stored as text and never
// interpreted here, so an old journal does not depend on the current tables. A store of another
// format is refused with a message.
//
// # Snapshots
//
// A [Snapshot] is a state as of one Seq. It contains the hash of that change, so that a snapshot of
// another history is rejected: SaveSnapshot refuses it, Latest skips it. Several are kept, and the
// newest valid one is returned. The journal does not interpret their content. Losing all snapshots
// costs time, but no data.
//
// # Torn tails
//
// Append returns after the batch is synced. If the machine fails earlier, the batch is stored
// completely or not at all after the restart. An incomplete batch is a torn tail, which the backend
// drops silently when it opens, because its append was never acknowledged. If Append failed with an
// error that is neither [*Conflict] nor [*Refused], the batch may be in either state: read Head and
// what follows before trying again. Damage before the tail is different: Read yields a [*Broken]
// that names the first bad Seq, and nothing is repaired or deleted automatically.
//
// # Past one machine
//
// Package engine/journal/jetstream keeps a journal in a stream of NATS JetStream, for a team on many hosts. Engine
// hosts use it.
//
//	Append        one message with the whole batch, not one for each change; several only for a batch that
//	              is larger than the servers take, all or none (an atomic batch). The only condition is
//	              Nats-Expected-Last-Sequence: the end of the stream as this host knows it. An
//	              expectation about an entity is checked against that end. Each append has an id
//	              of its own, the same for all its tries; package attempt says what the
//	              answers mean. Error 10071 is no proof of a conflict, and equal hashes are no
//	              proof of authorship. Appends that wait at the same time are one message
//	Seq           counted by the writer, with Version and Hash: the pinned end makes that safe
//	Read          from a mirror on the same host, an SQLite journal that takes only what continues the
//	              chain; a server may show the past
//	Head          the mirror's end, after the servers were asked for theirs; it may be older than an append of
//	              another host that was just acknowledged. Only an append is proof of the end
//	Watch         what the mirror gets, from an ordered consumer
//	SaveSnapshot  beside the mirror, and as an object named by Seq in an object store beside the stream
//	Latest        the newest of both whose Hash is that of its Seq
//
// The one promise: Read yields what was appended, in that order and byte for byte, or an error that says
// where it differs.
package journal
