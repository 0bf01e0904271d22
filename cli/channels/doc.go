// Package channels prints channels and their conversations, and follows them.
//
// Its promise: a conversation that is followed shows each line once and in order.
// The flags of the commands are in cmd/fairlead; what all commands share is in package cli.
package channels
