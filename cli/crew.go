package cli

import (
	"time"
)

// What of a name and a colour stands in a line that has to fit into 80 columns.
const (
	CrewNameWidth   = 20
	CrewStatusWidth = 8 // the longest status
	CrewIDWidth     = 12
	EvidenceWidth   = 40
	SleepersWidth   = 54 // behind "`fairlead crew wake` wakes 8: "
	NoticeWidth     = 200
	NoticesShown    = 5 // the newest; the journal has them all
)

// Past is how long something is past; clocks of two programs may differ a little.
func Past(at time.Time) time.Duration { return max(0, time.Since(at)) }
