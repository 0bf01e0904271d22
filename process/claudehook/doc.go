// Package claudehook implements Claude Code's hooks, which enforce a dispatch inside the program.
//
// Claude Code calls a hook at each event. If the event's session belongs to no dispatch, the hook
// says nothing and the program continues as without it. If it belongs to one (found by the
// program's session id), the hook records the event in the dispatch folder and denies what the
// current role may not do: with a reason, and the name of an agent that may. If the hook itself
// fails inside a dispatch, the call is blocked.
//
// Decode parses a hook's input, Hook.Answer decides, and an Answer holds what goes to standard
// output, standard error and the exit code. AddHooks and RemoveHooks edit a settings file and leave
// everything else in it unchanged, byte for byte.
//
// The names of events, tools and fields are those of Claude Code's documentation. Unknown fields and
// events are ignored; a known field of another type is a fault.
//
// The one promise: inside a dispatch no tool call passes because of an error here, and outside one
// the hooks have no effect.
package claudehook
