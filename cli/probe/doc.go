// Package probe starts an agent program, greets it, and reports what it says of itself and can do.
//
//	fairlead doctor ──────────┐
//	"Test" in Mission Control ┼──► Agent ──► a process of its own ──► driver ──► the agent's program
//	fairlead agent add --test ┘
//
// No conversation is started. The program runs in a process of its own, without a network where the kernel
// allows that.
//
// The one promise: when Ask returns, the program and all its processes have ended, after a time limit at the latest.
package probe
