// Package remote is the leader's side of the sessions that run on one other host. It makes a session's process
// there look like one beside this daemon.
//
// Trees sends the checkouts of runs to the host and takes them back, and the files of their folders.
//
// The one promise: a broken connection to a host is not seen by what uses its sessions, except as time that passes.
package remote
