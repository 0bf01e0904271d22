// Package node is the embedded NATS server of an engine host, and how engine hosts connect to it.
//
// A connection proves its host twice: by a certificate of the team's authority, and by the signature of the host's
// nkey. The server then asks [cluster.Members] whether that host is an engine host of the team, and gives it its
// permissions. After the membership has changed, [Node.Recheck] closes the connections of hosts that do not belong to it
// any longer, so a removal is effective at once. Servers connect to each other under the same rule. All share one account, since
// no server checks the subject to which an answer goes: a host that is not trusted with the journal must not connect.
//
// The server listens with TLS 1.3 from the first byte. It stores with a sync before each answer, and takes messages of 8
// MiB. [Connect] checks that of every server.
//
// The one promise: a connection belongs to an engine host of the team, or is closed.
package node
