package file

import "time"

// How files of others are watched.
const (
	PollEvery      = 5 * time.Second        // SPEC: the fallback where the watch is deaf
	TornFor        = 250 * time.Millisecond // SPEC: the same unparsable bytes for this long are malformed
	LookAgainAfter = 10 * time.Millisecond  // while in doubt; the watch usually tells before
	SwappedFor     = time.Second            // SPEC: how long a foreign pen may still be on the old sheet
)
