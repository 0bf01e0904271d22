// Package wire has what a leader and another host of its team say to each other: the routes, and the
// JSON of requests and answers.
//
// The host dials the leader. On that connection the leader sends requests to the host, about the
// sessions that it has placed there; on others the host sends its own: it renews its lease, asks
// whether a session may start, and passes on what programs on it ask. Whatever comes from the other
// side is untrusted: Read takes a body of a limited length, without unknown fields.
//
// The one promise: an error that one side returns is the same error on the other side.
package wire
