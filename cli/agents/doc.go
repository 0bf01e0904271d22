// Package agents orders agents, waits for what follows, and prints what they are and say.
//
// Its promise: an order to several agents reaches each of them, also if another one refuses it.
// The flags of the commands are in cmd/fairlead; what all commands share is in package cli.
package agents
