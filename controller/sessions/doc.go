// Package sessions starts, adopts and ends sessions: executions of agent programs.
//
// A session runs in a slot: an agent's, or that of one step of a run that no agent plays. To start
// one, the package prepares everything (program, environment, sandbox, conversation), asks the loop a
// last time whether the session is still wanted, and starts the shim. After a crash it asks each
// shim what became of its session and goes on from there; a session that the journal does not know is
// an orphan, beside which nothing starts.
//
// What a session is for is decided elsewhere: Hooks connect the controllers of channels, runs and
// dispatch folders, which prepare their own sessions, and package listen, which follows a session to
// its end.
//
// The promise: no session is started twice, none is started against the newest desired state, and
// each one that was started is followed to its end or reported as lost.
package sessions
