// Package lease carries the leases of machine/host over a key-value bucket of NATS.
//
// Each incarnation of a host has one entry, HOST.INCARNATION. It only changes by compare-and-set on its revision,
// which counts the changes of all entries of the bucket, and the servers store it by a majority. A host renews its
// own ([Keeper]). The leader watches all, and closes one before it declares a host lost ([Board]). Entries are never
// removed: a host that missed its loss could make a removed one anew.
//
// The answers of a server are weak. "Wrong revision" is no proof that another writer changed the entry, and a read may
// be old. A renewal counts only if it was stored, or if the entry shows its id. Without a proof for 3 s, a host
// connects to another server.
//
// Time comes from functions, so tests move it. [Now] is the clock of a host.
//
// The one promise: after Close has succeeded, no renewal of that incarnation is stored by a [Keeper].
package lease
