package boottime

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/host"

	"golang.org/x/sys/unix"
)

// bootClock also counts while the machine sleeps, on this system.
const bootClock = unix.CLOCK_MONOTONIC

// alarmLook is how often an alarm reads the clock: Go's timers stop while the machine sleeps.
const alarmLook = 500 * time.Millisecond

// Alarm waits for readings of the clock.
type Alarm struct{}

// NewAlarm makes an alarm.
func NewAlarm() (*Alarm, error) { return &Alarm{}, nil }

// Wait returns when the clock has reached a reading, soon after the machine wakes if it slept over it.
func (*Alarm) Wait(at host.BootTime) error {
	for left := at - Now(); left > 0; left = at - Now() {
		time.Sleep(min(time.Duration(left), alarmLook))
	}
	return nil
}
