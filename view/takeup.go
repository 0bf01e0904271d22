package view

// A conversation that is taken up again is taken up as it was: the same program with the same words
// behind it, in the same folder, with the same model and mode, and by nobody else at the same time.
// Where that is not so a person says what is to be; meanwhile the session keeps its seat and waits.

// The answers to whether a conversation is to go on all the same.
const (
	GoOn  = "resume" // with what was said before
	Anew  = "fresh"  // with nothing
	AskAs = "resume/"
)
