// Package proxy is the one way out of the networks of sessions.
//
//	fairlead __proxy FOLDER
//
// It is the porter of a house whose rooms have no doors to the street: each room has a bell that only it can ring, and the porter goes out
// for those who may, and to addresses that the porter has looked at. One process serves all sessions of a fairlead.yaml. It outlives
// the daemon and the shims that started it, with the last rules it was given (package wire says how it is found and started). Rules and
// keys are in its memory only.
//
// A session has a network namespace of its own. Its sockets were made inside it, and are accepted here: no bytes are carried by another
// process, and while there is no proxy nothing passes. A shim's connection is its session. When it ends, everything of the session closes.
//
// # What a connection goes through
//
//   - network.Rules decide about the name and the port, before anything is looked up. What is refused is answered with a sentence.
//   - A name is looked up once, by the machine's resolver, and every address is judged by the rules. Only judged addresses are connected
//     to. If an upstream proxy is configured, it gets the name and looks it up itself: then its operator decides about the addresses.
//   - At port 443 the ClientHello has to carry the same name (with ECH, the outer one); at port 80 the Host. Nothing is decrypted, so what a
//     host does with other names inside TLS is its own: a content network can serve more hosts than the one that was allowed.
//   - Hosts that a person named may be private and at any port. There the bytes are carried as they are, except TLS at port 443.
//
// Names are answered inside (dns.go) with addresses of 127.64.0.0/11, which lead back to this process: no look-up leaves the session.
//
// # Keys
//
// At /PROVIDER/ of the proxy's own address a program reaches its model provider with a key that it does not have. keys.go puts the key
// into a request to one origin and its paths, and into nothing else.
//
// # Limits
//
// Bodies and streams may be endless and are never held in memory. Everything else has a limit beside its reason.
//
// The one promise: a session reaches no address that its rules do not allow.
package proxy
