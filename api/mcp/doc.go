// Package mcp offers an agent its tools over the Model Context Protocol: say, pass, wait,
// ask_human, report_step and others.
//
// Tools serves them over HTTP at /mcp. Bridge serves them on standard input and output, for
// programs that cannot use HTTP, and passes each call to the daemon. A token identifies the
// agent and its session, and each request carries it, so a restarted daemon continues where
// the previous one stopped.
//
//	program ──► HTTP /mcp ───────────────► Tools ──► engine
//	program ──► stdio ──► Bridge ──► /mcp ───┘
//
// The one promise: a token lets an agent act in its own name, in its own open session, and
// nowhere else.
package mcp
