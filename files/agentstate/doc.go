// Package agentstate is the content of agent_state.json, the file through which other programs command
// an agent and report what it does (seed 000).
//
// State is the file as a value. Parse and Render are pure, keep unknown fields, and are the only
// code that knows how seed 000 spells things. Watch starts the exchange of the files of a whole team.
//
// The one promise: what another program wrote into a file that parses is in its State.
package agentstate
