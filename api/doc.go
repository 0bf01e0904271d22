// Package api is the counter at which everybody is served: the page, the command
// line, other people's programs, and agents that speak for themselves.
//
// It has two doors. The one to the network stands on loopback, and who comes in by
// it shows a token, speaks to us by our own name and comes from no other site. The
// one in the file system is a socket that only its owner can reach, and who comes
// in by it was looked at by the kernel. Behind both lies the same list of routes,
// from which the OpenAPI document and the reference are made as well.
//
//	browser, program ──► loopback: host, origin, token ──┐
//	                                                     ├──► routes ──► engine
//	fairlead VERB ─────► socket: the peer's user id ─────┘
//
// Nothing is decided here. A question is put to the engine, and its answer is
// passed on; a no is passed on with all of its reasons. Only who asks is looked at:
// an agent that runs in a session of ours orders nobody's turns, and speaks in no
// name but its own. Watchers do not each ask the engine: one reader takes every
// change from it, writes it down once as it goes over the wire, and keeps the
// newest few thousand; a watcher that comes from further back reads the journal
// until it meets them.
//
//	engine ──► feed: the newest changes, encoded once ──► watcher, watcher, …
//	journal ──────────── what is older ──────────────────────┘
//
// The one promise: a watcher that names the last sequence it has is told every
// change after it, each once and in order, or is told that it is not.
package api
