package interop

import "time"

// How files of others are watched.
const (
	pollEvery      = 5 * time.Second        // SPEC: the fallback where the watch is deaf
	tornFor        = 250 * time.Millisecond // SPEC: the same unparsable bytes for this long are malformed
	lookAgainAfter = 10 * time.Millisecond  // while in doubt; the watch usually tells before
	swappedFor     = time.Second            // SPEC: how long a foreign pen may still be on the old sheet
)
