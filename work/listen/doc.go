// Package listen turns the output of agent programs into events.
//
// One listener follows each session from the last output offset in the journal. The purpose of the
// session decides what the listener looks for: posts for a turn in a channel, markers from the lead
// of the crew, tool calls and delegations for a dispatch folder. Every listener also handles
// permission requests (package questions), usage and the terminal event.
//
// The events and the offset up to which the output was read are appended together. After a crash the
// listener reads the output again from that offset.
//
// The one promise: no output of an agent is lost, and none is counted twice.
package listen
