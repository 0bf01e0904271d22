// Package sessions has the slots and processes of sessions, which are executions of agent programs.
//
// A session runs in a slot: an agent's, or that of a run's step without an agent. This package makes what a
// program is started with (environment, sandbox, conversation), knows the process of each running session,
// and ends it. A session that the journal does not know is an orphan; nothing starts beside it. Package
// starts, above everything that a session is for, starts sessions and follows them to their end.
//
// The one promise: no conversation is resumed in two programs, or with other settings, unless a person
// agrees, and a session that is to end is asked until it ends.
package sessions
