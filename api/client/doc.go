// Package client is the Go client of the daemon. The command line uses it.
//
// A client finds the daemon of a repository through .fairlead/daemon.json, connects to its
// unix socket, and checks that the process at the other end belongs to the same user before
// it sends anything. Streams reconnect after an interruption and continue after the last
// event that was received.
//
//	Dial(dir) ──► Client ──► a method for each request of the command line; Events and Output follow a stream
//
// The one promise: an error says which of five things happened: no daemon runs (NoDaemon), the daemon
// ended before it answered (NoAnswer), the state does not allow the request (Refused), the server
// rejected it (api.Problem), or the connection failed.
package client
