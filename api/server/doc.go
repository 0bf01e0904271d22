// Package server is the HTTP server of the daemon. It serves Mission Control, the command
// line, other programs, and agents that speak for themselves.
//
// The server listens on two addresses. The TCP listener accepts loopback addresses only.
// Each TCP request must name this daemon as its host, must not come from another web
// site, and must carry the token or the secret of a browser that is signed in. The unix socket is in a folder that only its owner can
// open, and the kernel reports the user of each peer. Both serve the same routes. The
// OpenAPI document and doc/api.md are made from the same table of routes.
//
//	browser, program ──► TCP on loopback: host, origin, token ──┐
//	                                                            ├──► routes ──► engine
//	fairlead VERB ─────► unix socket: user id of the peer ──────┘
//
// The server decides nothing: it passes a request to the engine and returns the answer or
// the refusal. It only identifies the caller. A process in an agent's session may not give
// orders about turns, and may act only in its own agent's name.
//
// A watcher is the goroutine of its request. It takes the newest changes from the engine's
// memory, which all watchers share, and older ones from the journal. The number of streams
// has a limit, and a client that takes nothing for a while is cut off.
//
// The one promise: a watcher that names the last sequence number it has gets every later
// change once and in order, or an event that says why the stream ended.
package server
