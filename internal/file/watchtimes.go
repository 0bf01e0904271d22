package file

import "time"

// Intervals for watching files that other programs write.
const (
	PollEvery      = 5 * time.Second        // SPEC: polling, in case the watch misses a change
	TornFor        = 250 * time.Millisecond // SPEC: content that stays unparsable for this long is malformed
	LookAgainAfter = 10 * time.Millisecond  // while content is uncertain; usually the watch reports first
	SwappedFor     = time.Second            // SPEC: how long a replaced file is watched for late writes
)
