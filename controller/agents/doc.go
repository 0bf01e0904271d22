// Package agents keeps what is desired of each agent and what its agent_state.json says.
//
// Orders of people, and what other programs write into the file, become events of machine control.
// The file is a projection of the journal: it is written from the team's state, one write at a time
// for each agent, and content that another program put there is taken in as an event before anything
// is written over it (SPEC X3). The package also starts and ends the sessions that the state asks for.
//
// The promise: an order that another program wrote into the file is never lost, whenever it was
// written, and the file says what the journal says as soon as it can be written.
package agents
