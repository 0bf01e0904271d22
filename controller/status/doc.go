// Package status derives how each agent stands from evidence: its process, its file, its session, its
// channels, and their age.
//
// It asks the shim of a running session at the moment of the question and compares what it hears with
// the journal and with agent_state.json. Whatever contradicts is shown as doubt, never resolved by a
// guess. Why lists every piece of evidence for one agent.
//
// The promise: a status is never a guess; where evidence is missing or contradicts, the view says so.
package status
