// Package runs starts, follows and prints runs of workflows.
// The flags of the commands are in cmd/fairlead; what all commands share is in package cli.
//
// The one promise: a run that a command leaves, by a signal or a crash, can be continued.
package runs
