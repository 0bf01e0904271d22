// Package network decides which hosts a session may reach.
//
// A Setting is what a person wrote: the key network of an agent or of tasks. Its Rules are what the proxy of the sessions gets. The proxy
// asks twice for each connection: Decide judges the name and the port before anything is looked up, and Address judges each address
// that the name has. A person may name a host that is private, on this machine, or at an unusual port; nothing else may be so, neither a
// name of the tables nor one that a pattern or the word all lets through.
//
// An allowed host is a way out for data: a registry takes uploads, and a request can carry what the session read in its path. The
// tables are short for this reason. GitHub is not among the registries, although some packages come from there, because everybody
// can upload there.
//
// Providers are the model services, with the variables that hold their keys and the way in which a key is sent. Their facts are from
// public documentation; the source stands beside each row.
//
// The one promise: no address of a special range is allowed for a name that no person named.
package network
