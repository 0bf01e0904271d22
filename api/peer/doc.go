// Package peer identifies the process at the other end of a unix socket: its user and its
// process id, as the kernel recorded them when the connection was made.
//
// The daemon closes connections of other users before it reads a byte, and a client closes
// its connection before it sends one. The implementation differs for each system: Linux
// has SO_PEERCRED, macOS has LOCAL_PEERCRED.
//
// The one promise: SameUser returns nil only if the peer runs as this user or as root.
package peer
