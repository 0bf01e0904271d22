// Package adapter stands between Fairlead and a real agent program, in a process of its own.
//
// Think of a court interpreter. He sits beside the witness from the first word to the last, and
// whoever of the lawyers leaves the room finds on coming back that nothing was lost: the record
// goes on. The program speaks its own language, with a greeting that must be returned and questions
// that must be answered; the interpreter returns and asks on, and what goes into the record is one
// language, that of package speech. The daemon may die at any moment. The adapter is the shim's child
// and not the daemon's, so it stays, and so do the program and all that was half said.
//
//	daemon ◀──▶ shim (pipes, spool) ◀──▶ adapter ◀──▶ program
//	                                       Protocol.Play, Stage, Child
//
// This binary executes itself as the adapter: Intercept. A Protocol (driver/acp, driver/claude,
// driver/codex) is what one program speaks: one method, Play, that owns one goroutine. It reads
// orders and the program's lines from channels, tells events, and returns the terminal event. All
// else is here: the command line, the child and its three streams, noise, limits, signals, and what
// happens when Play itself breaks.
//
// # What the program may do
//
// It may write lines of up to LineBytesMax; a longer one is skipped and said to be. It may print
// what is no JSON: that is told as printed by "stdout", and its errors as by "stderr"; neither is a
// word of the agent. It may write faster than anybody reads: then it waits, since its next line is read
// when the last one was understood. It may read nothing: what we send is queued, up to a limit,
// and then refused. It may exit with 0 and have said nothing: only the terminal event counts.
// It may die, and leave others who hold its output open: they are not waited for. It may ignore the
// end of its input and SIGTERM: then it is killed. What it leaves behind ends with the shim's
// tree.
//
// The one promise: a session that was started has exactly one terminal event, whether the program
// ends it, or its death, or ours; except where the adapter itself is killed.
package adapter
