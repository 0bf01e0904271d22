// Package speech is how an agent's process and Fairlead speak with each other, where the process is
// one of ours.
//
// Think of two ships that signal with flags: one hoist says one thing, and every hoist that was
// seen whole counts, even if the signaller sinks with the next one in his hands. The agent's hoists
// are events, one line of JSON each on standard output; ours are orders, one line each on standard
// input. The script agent speaks this, and so does the adapter that stands before a real program
// and translates what it says.
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
//	{"type":"listening","input":120}
//	{"type":"faulted","text":"a message of an unknown kind","raw":{"method":"x/y"}}
//	{"type":"stopped","ok":true,"reason":"completed"}
//
//	{"type":"start","text":"the first prompt"}     with the start of the process
//	{"type":"prompt","text":"and another thing"}
//	{"type":"answer","id":"ask-1","option":"allow"}
//	{"type":"cancel"}
//
// The types of events are driver.FactKind. Whatever a reader does not know is Faulted, or, where it
// is a field, nothing. A line that does not begin with a brace is something said by who knows no
// events. Stopped is the terminal event: a session without it has failed, whatever its exit code.
//
// The one promise: an event that was told is one line, whole, and short enough to be read whole.
package speech
