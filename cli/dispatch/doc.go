// Package dispatch works on dispatch folders: it starts them, passes requests, and prints their state.
// The flags of the commands are in cmd/fairlead; what all commands share is in package cli.
//
// The one promise: the folder holds all state, so that each command works without a daemon.
package dispatch
