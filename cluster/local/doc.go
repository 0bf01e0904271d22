// Package local runs sessions on this host for a leader on another machine: it serves the leader's requests
// with the shims of this machine.
//
// Trees takes and gives the checkouts of runs, and the files of their folders.
//
// The one promise: a session that the leader places here begins at most once, and only under its lease.
package local
