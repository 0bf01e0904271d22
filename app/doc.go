// Package app combines the loop with the controllers and recovers a team after a start.
//
// Each concern has a package of its own in the rooms work and read. All use the loop (Submit, View, Go,
// Register) and the interfaces of package outside:
//
//	sessions     start, adopt and end executions of agent programs
//	agents       desired state and agent_state.json
//	turns        turns and messages of channels
//	crew         the lead and its members
//	runs         workflows and their steps
//	dispatch     dispatch folders
//	questions    what waits for a person
//	tools        the tools that agents call over MCP
//	status       the status of agents, with evidence
//	transitions  the transition log
//	indexer      the search index
//	outside      what the controllers need from outside
//	sessionhost  how sessions run on this machine and on others
//
// A start observes everything before it acts: it replays the journal, asks the shims for their
// sessions, reads the files for commands written meanwhile, and only then starts anything. A dry
// run (`up --plan`) decides with the same code on a journal that stores nothing.
//
// The one promise: after any crash the next start finds every session and every command again, and
// starts nothing twice.
package app
