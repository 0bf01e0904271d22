package view

// A resumed conversation keeps its conditions: the same program with the same arguments, in the same
// folder, with the same model and mode, and open in no other process. If a condition has changed, a
// person decides whether to resume; meanwhile the session keeps its slot and waits.

// The answers to the question whether to resume a conversation in spite of changed conditions.
const (
	GoOn = "resume" // with the earlier conversation
	Anew = "fresh"  // with a new conversation
)
