// Package cluster says what a host of a team may do on the connection between the hosts.
//
// Every host is a [Member]: it has a name, a role and the public half of its key. Hosts talk by subjects of
// NATS. [Member.Permissions] derives from the member alone which subjects a host may publish and subscribe. A plain
// host publishes its own events, questions and output, renews the lease of its present incarnation, and receives what is placed
// on it. Only an engine host reaches the journal, orders and the leases of others.
//
// The packages below do the rest. ca: the team's own certificate authority and the files of a host. invite:
// invitations that are used once, and the door at which a host joins. node: the embedded server, and
// connections to it. lease: the leases of machine/host, in an entry that changes by compare-and-set. No program imports
// them yet, because a team still runs on one machine (doc/adr/0037-transport-and-security-of-many-hosts.md).
//
// The one promise: no name or role lets a host speak for another one.
package cluster
