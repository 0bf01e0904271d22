// Package doctor finds problems in a workspace and says how to fix them.
//
// The one promise: it changes nothing without --fix, and then prints each change.
// The flags of the commands are in cmd/fairlead; what all commands share is in package cli.
package doctor
