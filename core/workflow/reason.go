package workflow

// EndReason is the code for why the process of a step is to end.
type EndReason string

const (
	EndReported  EndReason = "reported"  // its report was read
	EndCancelled EndReason = "cancelled" // a person cancelled it; the sentence names the person
	EndOver      EndReason = "over"      // its attempt is over, or the run is; the sentence says how
)

// PauseReason is the code for why a run is paused.
type PauseReason string

const (
	PausedByPerson PauseReason = "person" // a person paused it; a person releases it
	PausedByLimit  PauseReason = "limit"  // a limit of the day was reached; it is released when no limit is
)
