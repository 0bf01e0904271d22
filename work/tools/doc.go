// Package tools is what an agent can do for itself over MCP: end its turn, wait, speak in a channel,
// report its step, ask a person, say what it is doing.
//
// Each call comes with the token of one session and counts only for what that session is for: the turn
// that it was told, the step that it plays. A call arrives earlier than the text before it, so the end of
// a turn is noted first and takes effect when the listener has read the answer to its end.
//
// The one promise: a call never acts for another agent, another turn or another step than its session's.
package tools
