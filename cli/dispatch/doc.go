// Package dispatch works on dispatch folders: it starts them, passes requests, and prints their state.
//
// Its promise: the folder holds all state, so that each command works without a daemon.
// The flags of the commands are in cmd/fairlead; what all commands share is in package cli.
package dispatch
