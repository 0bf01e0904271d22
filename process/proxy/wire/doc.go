// Package wire is what shims and daemons say to the proxy of their sessions, and how they find it or start it.
//
// It is the order form at the counter: strict boxes, and a slot beside it through which open sockets are handed. A connection is a unix
// socket. Each side sends frames: four bytes of length, most significant first, and one JSON value with one message in it. Descriptors of
// sockets come with the first bytes of a frame. Each connection begins with a [Hello] in both directions, the proxy's last.
//
//	shim    ── Hello, Register + sockets ──►  proxy    its connection is the session: when it ends, all of it closes in the proxy
//	        ◄── Hello, Registered, Rules ───           Rules: those that a daemon has set, to be registered by the next proxy
//	daemon  ── Hello, Rules, Open ────────►
//	        ◄── Hello, Registered, Event, Opened, Refused
//
// Shims import this package, so it does without package net, which starts late and is heavy.
//
// # The start
//
// A proxy holds a lock, FOLDER/lock, as long as it lives. [Connect] looks for its socket; where there is none, it tries the lock without
// waiting. The caller that gets the lock starts `fairlead __proxy FOLDER` with the locked descriptor; the others connect again. The process
// that is started first starts the proxy in a session of its own and exits, so that the proxy is no child of a shim or a daemon.
//
// The one promise: two callers of Connect at the same moment reach the same proxy, and no frame is larger than its limit.
package wire
