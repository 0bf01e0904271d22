// Package worker is the daemon of a host that runs sessions for the leader of its team, which is on
// another machine. It has no journal and no controller.
//
// [Run] dials the leader, asks to be taken in, and renews the lease of the host. Each renewal that
// the leader has acknowledged moves the deadline of the sessions that are placed on the host. Whether
// a session may start, and which ones have to end, is decided by the rules of core/host. What the
// host needs for that after a restart is on disk before it acts: the highest epoch that it saw, and
// the lease of each session that it let start.
//
// Programs on the host use the socket of the folder, as on the leader's machine. Their requests are
// passed on to the leader, with what this host has seen of the process that made them.
//
// The one promise: a session runs here only while the leader cannot have let it begin elsewhere.
package worker
