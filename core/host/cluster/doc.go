// Package cluster says which hosts belong to a team, and what an engine host may do with the servers of NATS.
//
// Every host is a [Member]: it has a name, a role and the public half of its key. [Member.Permissions] derives from the
// member alone which subjects an engine host may publish and subscribe. Other hosts do not connect to those servers: they
// talk to the leader by requests (link).
//
// The packages below do the rest. ca: the team's own certificate authority and the files of a host. invite:
// invitations that are used once, and the listener at which a host joins. link: the connections between the leader and other
// hosts. wire: the requests and answers between them. node: the embedded server of an engine host, and connections to it. lease: the
// lease of the leader, in an entry that changes by compare-and-set. engine: the server and the journal of an engine host
// (doc/adr/0037-transport-and-security-of-many-hosts.md, doc/adr/0040-engine-hosts.md).
//
// The one promise: no name or role lets a host speak for another one.
package cluster
