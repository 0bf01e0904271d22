// Package sessions starts, adopts and ends sessions: executions of agent programs.
//
// A session runs in a slot: an agent's, or that of a run's step without an agent. To start one, the
// package prepares everything (program, environment, sandbox, conversation), asks the loop a last
// time whether the session is still wanted, and starts the shim. After a crash it asks each shim
// for the outcome of its session and continues from there. A session that the journal does not know
// is an orphan; nothing starts beside it.
//
// Hooks connect the controllers of channels, runs and dispatch folders, which prepare their own
// sessions, and package listen, which follows a session to its end.
//
// The one promise: no session is started twice, none is started against the newest desired state, and
// each one that was started is followed to its end or reported as lost.
package sessions
