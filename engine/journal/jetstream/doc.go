// Package jetstream keeps a journal in a stream of NATS JetStream, for teams on many hosts.
//
// The servers keep the stream on most of them before they answer, and decide which of two writers was first.
// They do not check what they keep, and may show the past. So each host has a mirror, an SQLite journal, which takes
// only what continues its hash chain. Everything is read from the mirror.
//
// # Append
//
// A batch is one message (see message.go), and Nats-Expected-Last-Sequence is its only condition. Expectations
// about entities are checked against the end that this host knows. Each append has an id, the same for all its tries;
// an [Attempt] judges the answers. A batch that is larger than a message of the server goes as an
// atomic batch of several, since a decision that cannot be stored would stop the team. Appends that wait at the same time
// become one message.
//
// # Reading
//
// An ordered consumer feeds the mirror. Head and Read first ask the servers where the stream ends; if they do not
// answer, the result is as of [Journal.AsOf]. Only an append is proof of the end. What a handle has appended itself it
// always reads. Watch yields what the mirror gets. A snapshot lies beside the mirror, and in an object store for hosts that join.
//
// # Damage
//
// A message that is missing, cannot be read, or does not continue the chain is a [*Damage]. The mirror keeps what it has and
// accepts nothing after it. Reads continue, appends fail, and the stream is tried again until it fits: another server may
// lead by then. [Scrub] compares the copy of the leading server with a mirror, from the first change on. [Repair] has
// one server fetch its copy anew. [CheckGroups] finds damaged files of the servers' groups before a server starts, and [Renew] lets the
// server take them from the others. [Fill] makes a new stream from a mirror: for a team that was on one host, and for one that
// has lost most of its copies.
//
// # Versions
//
// The stream's metadata names the format of its messages, and each message begins with its own. A
// program that reads another one refuses the stream with an [*OtherFormat].
//
// The one promise: a change that Append acknowledged is read on every host, once, at its place and byte for byte,
// or an error says where the history breaks off.
package jetstream
