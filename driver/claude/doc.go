// Package claude drives programs that speak as Claude Code does: JSON lines in both directions.
//
// Think of a simultaneous interpreter in a booth. In one ear she has the program: words in pieces,
// then the same words whole, calls of tools, now and then a question that holds everything up until
// it is answered. Into the microphone she says each thing once, in our own words, and in the order in
// which it happened: what is called before whether it may be called. What we say goes the other way,
// one prompt at a time; who speaks while the program still answers is heard next.
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
// Claude Code itself is known here from its documentation and from the source of its SDKs; what is
// tried in our tests is qwen-code, which speaks the same with other flags (the table in programs.go),
// and recordings. So the decoders are tolerant: what is missing is taken for nothing, and what is not
// understood is told as a fault, with the message as it was.
//
// What one may not forget of these programs: a question comes only where their own rules and mode say
// that one is to come; a result that says success may be the text of an error; the words of a subagent
// are not the agent's own; the sum of money is a running total of the process, the program's own
// estimate.
//
// The one promise: an answer has ended only when the program has said so, and what it said of its end
// is told as it was, whatever its exit code.
package claude
