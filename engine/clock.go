package engine

import "time"

// clock gives times that never go back, though the machine's may: it is set by hand, by
// NTP, by a virtual machine that is resumed. While the wall clock is behind what was
// said already, time goes on from there by the monotonic one, so that timers still run.
type clock struct {
	last time.Time // as given out
	mono time.Time // when that was
}

func (c *clock) now() time.Time {
	mono := time.Now()
	wall := mono.Round(0).UTC()
	if !wall.After(c.last) && !c.mono.IsZero() {
		wall = c.last.Add(mono.Sub(c.mono))
	}
	c.last, c.mono = wall, mono
	return wall
}

// seed makes the clock go on from a time that the journal holds.
func (c *clock) seed(last time.Time) {
	c.last, c.mono = last.Round(0).UTC(), time.Now()
}
