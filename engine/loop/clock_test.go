package loop

import (
	"sync"
	"testing"
	"time"
)

// A clock that was set back gives times that grow.
func TestClock(t *testing.T) {
	var c clock
	c.seed(time.Now().Add(time.Hour)) // the journal is from a clock that was ahead
	first := c.now()
	if d := time.Until(first); d < 59*time.Minute {
		t.Errorf("it went back by %v", time.Hour-d)
	}
	for range 1000 {
		next := c.now()
		if next.Before(first) || next.Location() != time.UTC {
			t.Fatalf("%v after %v", next, first)
		}
		first = next
	}
}

// Several goroutines ask at once, as the requests of a page do; the race detector looks on.
func TestClockOfAll(t *testing.T) {
	var c clock
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			last := c.now()
			for range 1000 {
				next := c.now()
				if next.Before(last) {
					t.Errorf("%v after %v", next, last)
				}
				last = next
			}
		})
	}
	all.Wait()
}
