package boottime

import "golang.org/x/sys/unix"

// bootClock also counts while the machine sleeps, on this system.
const bootClock = unix.CLOCK_MONOTONIC
