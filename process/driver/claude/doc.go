// Package claude drives programs that speak as Claude Code does: JSON lines in both directions.
//
// The program sends text in pieces and then again as a whole message, announces tool calls, and
// sometimes asks a question and waits for the answer. The package reports each thing once, in the
// order in which it happened; a tool call is reported before the question about it. Prompts go to
// the program one at a time: a prompt that arrives during an answer is sent after it.
//
//	claude -p --input-format stream-json --output-format stream-json --verbose …
//
//	◀── {"type":"user","message":{"role":"user","content":"…"}}           a prompt
//	──▶ {"type":"system","subtype":"init","session_id":…,"model":…}       who it is, at each answer
//	──▶ {"type":"stream_event","event":{…"text_delta"…}}                  words, in pieces
//	──▶ {"type":"assistant","message":{"content":[…]}}                    words, thoughts and calls, whole
//	──▶ {"type":"control_request","request":{"subtype":"can_use_tool"}}   a question
//	◀── {"type":"control_response","response":{…"behavior":"allow"}}      its answer
//	──▶ {"type":"result","subtype":"success","total_cost_usd":…}          the end of the answer
//
// Claude Code itself is known here from its documentation and from the source of its SDKs. The tests
// use qwen-code, which speaks the same protocol with other flags (see the table in programs.go), and
// recordings. Therefore the decoders are tolerant: missing fields count as empty, and a message that
// cannot be understood is reported as a fault with its original text.
//
// Properties of these programs to keep in mind: they only ask if their own rules and mode require
// it; a result marked as success may contain the text of an error; a subagent's words are not the
// agent's own; the reported cost is the program's own estimate, a running total of the process.
//
// The one promise: an answer has ended only when the program has said so, and its result is reported as it
// was sent, whatever the exit code.
package claude
