package loop

import (
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
