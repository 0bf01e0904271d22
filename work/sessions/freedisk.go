package sessions

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	measureAhead = 10 * time.Second // growth is measured so long before the disk is where starts wait for it: two looks at large folders
	fillsWithin  = time.Minute      // a session that needs longer to fill what is left is not ended
	endsWithin   = 10 * time.Second // a session has ended by then, and what it had open is free
)

// diskLevel is what free disk asks for.
type diskLevel int

const (
	diskEnough diskLevel = iota
	diskNear             // growth is measured
	diskLow              // the session that grows fastest is ended
)

// lowDisk watches the disk on which .fairlead is, on behalf of WatchTeam.
type lowDisk struct {
	look func() (free, all uint64, err error)

	free  int64 // at the last look
	at    time.Time
	after time.Time // no session is ended before
	said  bool      // that none grows
}

// level takes a look. It looks ahead by how fast the disk fills: to the next look for ending a session, and further for measuring.
func (f *lowDisk) level(now time.Time) (diskLevel, int64) {
	free, all, err := f.look()
	if err != nil || all == 0 {
		return diskEnough, 0 // the journal's next write says what is wrong
	}
	left := int64(min(free, math.MaxInt64)) //nolint:gosec // bounded
	falls := int64(0)                       // a second
	if past := now.Sub(f.at); !f.at.IsZero() && past > 0 && left < f.free {
		falls = int64(float64(f.free-left) / past.Seconds())
	}
	f.free, f.at = left, now
	needed := int64(min(startDisk, all/startShare)) //nolint:gosec // bounded
	switch ahead := func(d time.Duration) int64 { return left - int64(float64(falls)*d.Seconds()) }; {
	case ahead(teamEvery) < needed/lowShare:
		return diskLow, left
	case ahead(measureAhead) < needed:
		return diskNear, left
	}
	f.said = false
	return diskEnough, left
}

// holdDisk ends the session that fills the disk fastest if too little of it is free. What its folders have stays, so the others go on
// only if they fill what is left slowly.
func (c *Controller) holdDisk(ctx context.Context, f *lowDisk) {
	level, free := f.level(time.Now())
	if level == diskEnough {
		return
	}
	grows := askAll(ctx, c, func(ctx context.Context, p LimitEnder) (int64, error) { return p.Growth(ctx) })
	if level != diskLow || time.Now().Before(f.after) {
		return
	}
	id := Fastest(free, grows)
	ender, is := c.Proc(id).(LimitEnder)
	if !is {
		if !f.said {
			c.log.Warn("little disk is free, and no session fills it: free disk space", "free", file.Size(free))
		}
		f.said = true
		return
	}
	c.log.Warn("little disk is free, and the session that fills it fastest is ended", "session", id, "free", file.Size(free),
		"bytes_per_second", grows[id])
	if ender.EndAt(ctx, session.LimitFreeDisk) == nil {
		f.after = time.Now().Add(endsWithin)
	}
}

// Fastest names the session that grows by most bytes a second; empty: none fills what is free within a minute.
func Fastest(free int64, grows map[string]int64) (fastest string) {
	for id, rate := range grows {
		if rate > free/int64(fillsWithin/time.Second) &&
			(fastest == "" || cmp.Or(cmp.Compare(rate, grows[fastest]), cmp.Compare(fastest, id)) > 0) {
			fastest = id
		}
	}
	return fastest
}
