// Package demo runs scripted agents in a scratch repository.
// The flags of the commands are in cmd/fairlead; what all commands share is in package cli.
//
// The one promise: it needs no account, key or network, and leaves nothing behind.
package demo
