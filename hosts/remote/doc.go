// Package remote is the leader's side of the sessions that run on one other host. It makes a session's process
// there look like one beside this daemon.
//
// All requests may be repeated: a start is at most once, input has an offset, output is read from one. So a
// request whose connection broke is sent again when the host is back, and a stream of output continues at the
// byte that was read last. How long that takes is not limited here. A host that does not come back is lost by the
// rules of core/host, and its sessions are lost then.
//
// Trees sends the checkouts of runs to the host and takes them back, and the files of their folders.
//
// The one promise: a broken connection to a host is not seen by what uses its sessions, except as time that passes.
package remote
