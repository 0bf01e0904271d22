package ratelimit

import (
	"testing"
	"time"
)

// A wait that no provider names doubles up to half an hour; one that it names lasts a second to a week; the longest counts.
func TestNext(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var last *Limited
	for i, minutes := range []int{1, 2, 4, 8, 16, 30, 30} {
		if last != nil {
			last.Until = time.Time{} // it has ended
		}
		want := time.Duration(minutes) * time.Minute
		now, longer := Next(last, at, time.Time{}, "busy")
		if got := now.Until.Sub(at); got != want || !longer || now.Stated {
			t.Errorf("wait %d lasts %v, longer %v", i, got, longer)
		}
		last = &now
	}
	for named, want := range map[time.Duration]time.Duration{
		-time.Hour: time.Second, time.Hour: time.Hour,
		1000 * time.Hour: 7 * 24 * time.Hour,
	} {
		if now, _ := Next(nil, at, at.Add(named), "busy"); now.Until.Sub(at) != want || !now.Stated {
			t.Errorf("%v: %+v", named, now)
		}
	}
	if _, longer := Next(last, at, at.Add(time.Minute), "busy"); longer {
		t.Error("a shorter wait replaces a longer one")
	}
}
