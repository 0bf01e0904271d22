package host

import "time"

// BootTime is a reading of a host's CLOCK_BOOTTIME, which also counts while the machine sleeps; Go's monotonic
// clock does not. Only two readings of one boot of one machine can be compared.
type BootTime time.Duration

// DeadMan is the deadline of one session that a host runs under a lease, as its shim keeps it. A shim outlives its daemon, so it checks
// both times itself, immediately before it starts the process and while that runs.
type DeadMan struct {
	StartBy BootTime `json:"start_by"`
	EndAt   BootTime `json:"end_at"`
	Waits   bool     `json:"waits,omitempty"` // of a session with on_lost: wait: it has no end
}

// MayBegin is the check before the process starts.
func (d *DeadMan) MayBegin(now BootTime) bool { return now < d.StartBy }

// Extend moves the deadline to that of a later acknowledged renewal. It never moves back.
func (d *DeadMan) Extend(to BootTime) { d.EndAt = max(d.EndAt, to) }

// Due reports whether the process must be killed now.
func (d *DeadMan) Due(now BootTime) bool { return !d.Waits && now >= d.EndAt }
