// Package invite lets hosts join a team by invitations.
//
// A person makes an invitation ([Store.Invite]) and gets a [Token], a text of some 200 characters, to paste on
// the other host. It says where to join, and has a secret and the fingerprint of the team's certificate authority. The
// store keeps only a hash of the secret. An invitation is valid for 15 minutes and for one host.
//
// The [Server] is where a host joins. It listens only while an invitation is open, at the port of the hosts'
// connections ([Share]). The host ([Join]) checks first that
// it talks to the authority that the token names, and only then sends the secret, with its public key and a request for a
// certificate. The store notes that the invitation is used, on disk, before anything is signed. The same host may repeat its
// request if the answer was lost. Another host gets a refusal, with a code that says why. If the team does not admit the
// host, for example because its name is taken, the invitation can be used again.
//
// Role and labels in a token are for the person who reads it. Those in the store count.
//
// The one promise: one invitation admits one host, and its secret is in no error, log or file.
package invite
