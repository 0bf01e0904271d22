// Package repositories prints the list of all repositories of a user.
//
// The list comes from the sockets of the daemons, not from the folder in which a command runs.
package repositories
