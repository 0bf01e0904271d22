// Package status derives the status of each agent from evidence: its process, its file, its
// session, its channels, and their age.
//
// It asks the shim of a running session at the moment of the request and compares the answer with
// the journal and with agent_state.json. Contradictions are shown as doubt and never resolved by a
// guess. Why lists every piece of evidence for one agent.
//
// The one promise: a status is never a guess; if evidence is missing or contradictory, the view says
// so.
package status
