// Package link has the connections between the leader of a team and its other hosts: TLS 1.3 by the team's own
// authority, with requests of HTTP/2 in both directions.
//
// A host dials the leader twice ([Dial], [Keep]), at one port ([Listen]). On one connection it sends its own requests,
// on the other the leader sends requests to it, so a host needs no open port. ALPN says which is which. A connection has
// two proofs: a certificate of the team, and a signature by the host's nkey, over a secret that only the two ends of
// this connection have (RFC 5705). The leader asks [cluster.Members] for each connection, and answers why it refuses one.
// [Hub.Recheck] closes those of hosts that were removed.
//
// Both ends send a ping after 3 s of silence and wait 3 s for the answer, so a dead peer is noticed. A new connection of a
// host replaces its last one. Output and uploads flow as fast as the other end reads, with 256 KiB on the way for each.
//
// The one promise: a request reaches a handler only from a host that was a member when it connected and at the last
// Recheck, and the handler knows its name.
package link
