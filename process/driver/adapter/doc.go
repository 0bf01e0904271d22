// Package adapter runs an agent program in a separate process, which translates the program's
// protocol into package speech. The program's protocol may require initialization messages and
// answers to questions; the adapter takes care of both. The adapter is a child of the shim, not of
// the daemon. If the daemon ends, the adapter and the program continue, and the daemon reads the
// recorded output later.
//
//	daemon ◀──▶ shim (pipes, spool) ◀──▶ adapter ◀──▶ program
//	                                       Protocol.Play, Stage, Child
//
// This binary executes itself as the adapter; see Intercept. A Protocol (process/driver/acp, process/driver/claude,
// process/driver/codex) implements the protocol of one kind of program in one method, Play, which runs in
// one goroutine. Play reads orders and the program's lines from channels, reports events, and
// returns the terminal event. Everything else is in this package: the command line, the child and
// its three streams, output that is not part of the protocol, limits, signals, and a panic in Play.
//
// # What the program may do
//
// It may write lines of up to LineBytesMax; a longer one is skipped and reported. It may print
// lines that are not JSON: they are reported as printed by "stdout", and its error output as
// printed by "stderr"; neither counts as text of the agent. It may write faster than the adapter
// reads: it blocks then, because the next line is read after the last one was handled. It may read
// nothing: messages to it are queued up to a limit, and further ones are refused. It may exit with
// code 0 without a result: only the terminal event counts. It may die and leave processes that hold
// its output open: the adapter does not wait for them. It may ignore the end of its input and
// SIGTERM: it is killed. Processes that it leaves behind end with the shim's process tree.
//
// The one promise: a session that was started has exactly one terminal event, unless the adapter
// itself is killed. It does not matter whether the program ends the session, dies, or is stopped.
package adapter
