// Package crew prints the crew, and waits for what the lead reports about it.
// The flags of the commands are in cmd/fairlead; what all commands share is in package cli.
//
// The one promise: a member is shown as awake only if the lead said so.
package crew
