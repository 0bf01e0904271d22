// Package ca is the certificate authority of a team, and the files by which a host proves itself.
//
// [Create] makes the authority, once, on the host on which a team becomes a cluster. Its key stays in that
// host's folder. Each host makes its own two keys ([NewIdentity]) and never sends them: one for TLS, which the
// authority certifies, and an nkey, which signs the challenge of each connection. The certificate of an engine host is
// good for servers and clients, that of another host for clients only, so no host can pose as a server.
//
// The authority is valid for ten years and a certificate for one. A host asks for the next one when a third of the
// time is left ([Identity.RenewalDue]), and takes it without a restart. Nothing is revoked by a list: the server asks
// for each connection whether the host still belongs to the team.
//
// [Explain] turns the errors of TLS into sentences that say what to do.
//
// The one promise: private keys are in files that only the user can read, and nowhere else: not in an error, a
// log or a message.
package ca
