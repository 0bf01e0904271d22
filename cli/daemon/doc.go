// Package daemon assembles the daemon and runs it: up, down, and the dry run of up.
// The flags of the commands are in cmd/fairlead; what all commands share is in package cli.
//
// The one promise: what it opens it closes in reverse order, and agents keep running when it ends.
package daemon
