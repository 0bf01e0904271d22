// Package host is the life of the hosts of a team: the machines on which its sessions run.
//
// A host joins with an invitation and gets an incarnation, a number that rises each time it comes back. It
// renews a lease every few seconds. The leader doubts a host whose renewals stop, and later declares it
// lost. A host that drains gets no new session and leaves when its last one has ended. [Table] has the rows.
//
// Every session is placed on one incarnation of one host, under a lease with a number ([Lease]). The number
// is the fencing token: what a host reports under another number or an older incarnation is late, is kept,
// and changes nothing.
//
// The rules of both sides are here, too, as functions of readings of one's own clock. [Guard] and [DeadMan]
// are those of the host: what it has to do about a session, whether it may start one, and when its sessions
// must have ended. [Watch] and [Hosts.MayMove] are those of the leader: when a host is lost, and when its
// sessions may begin elsewhere. Clocks of two hosts are never compared. The rules only assume that their
// rates differ from true time by [RateMax] at most.
// [Hosts.Choose] says where a session runs and why.
//
// [Term] is the lease of the leader itself.
//
// A lease that ends while it does not count is one whose host was lost: the session may have printed, reported
// and changed more than the leader knows. Its host has it as [Missing] until it is back and that was fetched.
// What was found is a [Late].
//
// The one promise: a session has at most one process, on all hosts together.
package host
