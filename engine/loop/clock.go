package loop

import (
	"sync"
	"time"
)

// clock gives times that never go back, although the system clock may: a person, NTP or a resumed
// virtual machine can set it. While the system clock is behind the last time that was given out, time
// goes on from there by the monotonic clock, so that timers still run. Every goroutine may ask it.
type clock struct {
	mu sync.Mutex

	last time.Time // as given out
	mono time.Time // when that was

	fixed time.Time // every answer of a clock that does not move; zero: it goes on
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.fixed.IsZero() {
		return c.fixed
	}
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
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.mono = last.Round(0).UTC(), time.Now()
}
