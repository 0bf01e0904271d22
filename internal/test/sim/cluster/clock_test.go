package cluster

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
)

// clock has the clocks of one machine. Rate is theirs against true time.
type clock struct {
	rate   float64
	began  time.Duration // true time of the boot
	slept  time.Duration // since the boot; the monotonic clock does not count it
	jumped time.Duration // of the wall clock
}

// boot is CLOCK_BOOTTIME: it counts while the machine sleeps.
func (c *clock) boot(now time.Duration) host.BootTime { return c.ran(now - c.began) }

func (c *clock) ran(d time.Duration) host.BootTime { return host.BootTime(float64(d) * c.rate) }

// start is the time of day at which a run begins.
var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// wall is the time of day, which may jump.
func (c *clock) wall(now time.Duration) time.Time { return start.Add(now + c.jumped) }

// now is the clock by which a host keeps the rules of leases.
func (p *peer) now() host.BootTime { return p.clock.boot(p.w.now) }

// after is how long, in true time, this clock needs for a duration.
func (p *peer) after(d host.BootTime) time.Duration {
	return time.Duration(float64(d) / p.clock.rate)
}
