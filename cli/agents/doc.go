// Package agents gives orders to agents, waits for their effect, and prints agents' status and
// output.
// The flags of the commands are in cmd/fairlead; what all commands share is in package cli.
//
// The one promise: an order to several agents reaches each of them, also if another one refuses it.
package agents
