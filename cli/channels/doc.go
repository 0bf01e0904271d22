// Package channels prints channels and their conversations, and follows them.
// The flags of the commands are in cmd/fairlead; what all commands share is in package cli.
//
// The one promise: following a conversation shows each entry once and in order.
package channels
