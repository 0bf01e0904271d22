// Package starts starts sessions, picks them up again, and follows each to its end.
//
// It is above everything that a session is for: agents, channels, dispatch folders, runs and hosts. It calls them by name. Packages
// below derive what has to be done from the team's state, and this package does it with sessions:
//
//	order        the loop opens a session (append 1)
//	ready        beside the loop: a place, the program, its environment and its prompt
//	permission   one request to the loop: what the agent's file says now, every check again, the token's hash (append 2)
//	start        the shim
//	started      the process is in the journal (append 3), and is followed until its end is
//
// After a crash it asks each shim for the outcome of its session and goes on from there.
//
// The one promise: no session is started twice, none is started against the newest desired state, and each one that was started is
// followed to its end or reported as lost.
package starts
