// Package controller puts the loop and the controllers together, and recovers a team after a start.
//
// Each concern has a package of its own below this one; all stand on the loop (Submit, View, Go,
// Register) and on the seams to the outside:
//
//	sessions     start, adopt, end: executions of agent programs
//	agents       desired state and agent_state.json
//	channels     turns and messages
//	crew         the lead and its members
//	runs         workflows and their steps
//	dispatch     dispatch folders
//	questions    what waits for a person
//	tools        what agents do for themselves over MCP
//	status       how an agent stands, with evidence
//	transitions  the log of transitions
//	seam         hosts, files, drivers: everything outside
//
// A start looks first and acts last: the journal is replayed, shims are asked for their sessions, files
// are read for what was desired meanwhile, and only then does anything begin. A dry run (`up --plan`)
// decides with the same code on a journal that keeps nothing.
//
// The promise: after any crash the next start finds every session and every order again, and starts
// nothing twice.
package controller
