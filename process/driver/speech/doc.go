// Package speech is the protocol between Fairlead and an agent's process, if that process is
// Fairlead's own binary: the script agent, or an adapter that translates for another program.
//
// The agent writes events, one line of JSON each, on standard output. Fairlead writes orders, one
// line each, on standard input. Every complete line counts, even if the process ends right after it.
//
//	{"type":"said","text":"hello","part":true,"tool":"stderr"}
//	{"type":"thought","text":"what now?"}
//	{"type":"tool_called","tool":"Bash","text":"go test","args":{"command":"go test"}}
//	{"type":"permission_asked","id":"ask-1","tool":"Write","text":"Write a.txt","args":{"file_path":"/w/a.txt","content":"…"},
//	  "paths":["/w/a.txt"],"cut":["content"],"options":[{"id":"allow","kind":"allow_once","label":"Yes"}]}
//	{"type":"permission_answered","id":"ask-1","text":"allow"}
//	{"type":"permission_withdrawn","id":"ask-1"}
//	{"type":"usage_reported","input_tokens":1200,"output_tokens":80,"cost_usd":0.004}
//	{"type":"conversation_named","conversation":{"id":"3f2a","model":"m1","program":"opencode 1.18.33","enforced":"asks before it writes and runs"}}
//	{"type":"rate_limited","until":"2026-11-20T15:00:00Z","text":"the limit is reached"}
//	{"type":"text_read","id":"3","text":"use the v2 client"}
//	{"type":"listening","input":120}
//	{"type":"faulted","text":"a message of an unknown kind","raw":{"method":"x/y"}}
//	{"type":"stopped","ok":true,"reason":"completed"}
//
//	{"type":"start","text":"the first prompt"}     with the start of the process
//	{"type":"prompt","text":"and another thing"}
//	{"type":"steer","id":"3","text":"use the v2 client"}    read during the answer, or right after it
//	{"type":"answer","id":"ask-1","option":"allow"}
//	{"type":"cancel"}
//
// An event is a driver.Fact, and its type a driver.FactKind. A reader reports an unknown type as Faulted and ignores
// unknown fields. A line that does not begin with a brace is something said by a program that does
// not know the protocol. Stopped is the terminal event: a session without it has failed, whatever
// its exit code.
//
// The one promise: an event that was written is one complete line, short enough to be read in one piece.
package speech
