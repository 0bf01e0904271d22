// Package repositories prints the list of all repositories of a user.
//
// The list comes from the sockets of the daemons, not from the folder in which a command runs, so it is the same
// everywhere.
//
// The one promise: every text of another process is printed as one line without control characters.
package repositories
