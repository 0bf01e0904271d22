package cli

import (
	"time"
)

// Widths of names and colours in lines that must fit into 80 columns.
const (
	CrewNameWidth   = 20
	CrewStatusWidth = 8 // the longest status
	CrewIDWidth     = 12
	EvidenceWidth   = 40
	SleepersWidth   = 54 // behind "`fairlead crew wake` wakes 8: "
	NoticeWidth     = 200
	NoticesShown    = 5 // the newest; the journal has them all
)

// Past returns how long ago a time was, at least 0: clocks of two programs can differ a little.
func Past(at time.Time) time.Duration { return max(0, time.Since(at)) }
