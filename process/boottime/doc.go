// Package boottime reads the clock of this machine that also counts while it sleeps: CLOCK_BOOTTIME
// on Linux, the monotonic clock of macOS. Go's own monotonic clock stops meanwhile, so a lease that
// it measures would hold too long.
//
// The one promise: two readings differ by the time that has passed, also when the machine slept
// between them.
package boottime
