// Package network connects the daemon to the proxy of its sessions.
//
// It is the receptionist of the gate: the gate itself works alone, with the list that it got last, and this package reads its book, takes
// its questions to people, and hands back a longer list. What a session asked for in vain becomes a question; a yes becomes an entry in the
// session's rules: once until the host was reached, for the session, or always. What sessions reached and were refused is journaled,
// folded.
//
// The one promise: a session reaches a host that its rules do not name only after a person's answer is in the journal.
package network
