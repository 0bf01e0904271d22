// Package repositories prints the list of all repositories of a user.
//
// The list comes from the sockets of the daemons, not from the folder in which a command runs. It is
// a window on a street: each house has its own daemon, its own journal and its own key, and from here one sees
// which of them has a light on, and which one waits for a person.
//
// The one promise: what another program wrote at a socket is shown as text, and never as a state of a repository.
package repositories
