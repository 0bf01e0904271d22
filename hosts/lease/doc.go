// Package lease keeps the lease of a team's leader in a key-value bucket of NATS.
//
// There is one entry. It only changes by compare-and-set on its revision, and the servers store it by a majority. The leader
// renews it every two seconds. An engine host that sees no renewal for six may claim it, and then tries to lead.
//
// The answers of a server are weak. "Wrong revision" is no proof that another host changed the entry, and a read may be
// old. A renewal counts only if it was stored, or if the entry shows it. The rules are those of [host.Term].
//
// The one promise: of two hosts that change the entry from the same revision, one succeeds at most.
package lease
