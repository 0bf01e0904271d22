package shim

import (
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/process/boottime"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// leaseEnded is why a leased session does not begin, or was ended.
const leaseEnded = "the lease of its host ended"

// mayBegin is the last check before the process of a leased session starts.
func mayBegin(man *host.DeadMan) error {
	if man == nil || man.MayBegin(boottime.Now()) {
		return nil
	}
	return &spawn.CannotStart{Why: leaseEnded + ", or the answer that let it start was too old"}
}

// heed ends the tree of a leased session when its deadline has come: SIGTERM at once, SIGKILL after half of
// host.EndWithin. If the machine slept meanwhile, that time is over, too.
func (k *keeper) heed() {
	for {
		k.mu.Lock()
		end, due := k.deadMan.EndAt, k.deadMan.Due(boottime.Now())
		if due && k.endedAt.IsZero() {
			k.why = leaseEnded
		}
		k.mu.Unlock()
		if due {
			_ = k.end(max(0, time.Duration(end+host.EndWithin/2-boottime.Now())))
			return
		}
		if k.alarm.Wait(end) != nil { // the deadline may have been moved meanwhile
			time.Sleep(attachPauseMax)
		}
	}
}

// extend moves the deadline. It is only stored in memory: the shim lives as long as what it has to end.
func (k *keeper) extend(to host.BootTime) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.deadMan == nil || k.deadMan.Waits:
		return fmt.Errorf("session %s was started without a deadline", k.record.Session)
	case k.why != "", k.deadMan.Due(boottime.Now()): // heed may not have had the processor yet
		return ErrEnded
	}
	k.deadMan.Extend(to)
	return nil
}
