package boottime

import (
	"fmt"
	"os"

	"github.com/fairlead-dev/fairlead/core/host"

	"golang.org/x/sys/unix"
)

// bootClock also counts while the machine sleeps.
const bootClock = unix.CLOCK_BOOTTIME

// Alarm waits for readings of the clock. One goroutine at a time may wait.
type Alarm struct {
	fd int
	f  *os.File
}

// NewAlarm makes an alarm.
func NewAlarm() (*Alarm, error) {
	fd, err := unix.TimerfdCreate(bootClock, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a timer of the boot's clock: %w", err)
	}
	return &Alarm{fd, os.NewFile(uintptr(fd), "timer")}, nil
}

// Wait returns when the clock has reached a reading, at once if the machine slept over it.
func (a *Alarm) Wait(at host.BootTime) error {
	set := unix.ItimerSpec{Value: unix.NsecToTimespec(max(1, int64(at)))} // 0 would disarm it
	if err := unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &set, nil); err != nil {
		return fmt.Errorf("set a timer of the boot's clock: %w", err)
	}
	_, err := a.f.Read(make([]byte, 8)) // how often it was due
	return err
}
