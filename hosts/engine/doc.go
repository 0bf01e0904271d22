// Package engine runs the NATS server of an engine host, once its team has three engine hosts, and connects this process to it.
// The servers of the engine hosts replicate the journal.
//
// [Start] starts the server. It listens on the port after that for hosts, for the servers of other engine hosts only; this
// process connects without a port. When all servers are connected to each other, [Replica.Move] copies the SQLite journal of
// the leader into a stream on three of them. From then on [Replica.Open] gives the journal of this host: it is kept in the
// stream, and the SQLite file is its mirror, so a cluster can end without a loss.
//
// One of the engine hosts leads: [Lead] is its lease, which it claims and renews. The others see when the leader no longer renews it.
//
// [Facts] is what a host has learned of the cluster: its engine hosts, and whether the journal is in their stream. It is a
// file, because a host that starts needs it before any other host answers.
//
// The one promise: the journal is in one place at a time. It is the SQLite file until all of it is in the stream, and
// the stream from then on.
package engine
