package boottime

import (
	"fmt"

	"github.com/fairlead-dev/fairlead/core/host"

	"golang.org/x/sys/unix"
)

// Now reads the clock of this machine that also counts while it sleeps.
func Now() host.BootTime {
	var at unix.Timespec
	if err := unix.ClockGettime(bootClock, &at); err != nil {
		panic(fmt.Sprintf("boottime: read the clock of the boot: %v", err)) // leases cannot hold without it
	}
	return host.BootTime(at.Nano())
}
