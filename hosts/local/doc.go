// Package local runs sessions on this host for a leader on another machine: it serves the leader's requests
// with the shims of this machine.
//
// A request can come twice, because the connection broke before its answer arrived, or late. So a start is
// refused if the session began before, input has an offset, and each request about a session carries the
// leader's epoch. Requests about one session are carried out one after the other, and to their end, also if the
// connection breaks meanwhile.
//
// In addition to its shim's records, the folder of a session has the lease under which it was started. With it, a restarted
// daemon finds its sessions.
//
// Trees takes and gives the checkouts of runs, and the files of their folders.
//
// The one promise: a session that the leader places here begins at most once, and only under its lease.
package local
