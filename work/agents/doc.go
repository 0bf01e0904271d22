// Package agents keeps the desired state of each agent and its agent_state.json.
//
// Commands of people and content that other programs write into the file become events of machine
// control. The file is a projection of the journal: it is written from the team's state, one write
// at a time for each agent. Content that another program wrote is recorded as an event before the
// file is written again (SPEC X3). The package also starts and ends the sessions that the state
// asks for.
//
// The one promise: a command that another program wrote into the file is never lost, whenever it was
// written, and the file matches the journal as soon as it can be written.
package agents
