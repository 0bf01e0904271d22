package workspace

import (
	"time"
)

const (
	// stateEvery bounds how often run_state.json is written: it grows with the run, and to
	// rewrite it at each event costs the square of the steps. The first change after a silence
	// is written at once.
	StateEvery = 10 * time.Millisecond
	StateShare = 2                     // and no more than half of the time goes into writing,
	StateLate  = 40 * time.Millisecond // but it is never further behind than this and one write
	// from a change to its write, also on a busy machine; a later difference counts as an edit by another program, and is kept
	StateOurs = 2 * time.Second

	PollDefault = 200 * time.Millisecond // between checks of files that people are asked to write
	StateMode   = 0o644                  // of a file of a run: as public as the repository
)
