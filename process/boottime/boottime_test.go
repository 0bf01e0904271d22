package boottime

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
)

// TestAlarm: an alarm is never early, and one for a time that has passed does not wait.
func TestAlarm(t *testing.T) {
	alarm, err := NewAlarm()
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []host.BootTime{-1, 0, 1, Now(), Now() + host.BootTime(30*time.Millisecond), Now()} {
		if err := alarm.Wait(at); err != nil || Now() < at {
			t.Errorf("waited for %d until %d: %v", at, Now(), err)
		}
	}
}
