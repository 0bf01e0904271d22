// Package daemon assembles the daemon and runs it: up, down, and the dry run of up.
//
// Its promise: what it opens it closes in reverse order, and agents keep running when it ends.
// The flags of the commands are in cmd/fairlead; what all commands share is in package cli.
package daemon
