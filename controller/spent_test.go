package controller

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// spent is the processor time that this process has used. Unlike durations, it hardly depends on
// other work of the machine.
type spent struct {
	user   time.Duration
	allocs uint64
}

func spentSoFar(b *testing.B) spent {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return spent{time.Duration(usage.Utime.Nano()), memory.Mallocs}
}

// report reports the cost of each operation since then, for the whole process.
func (was spent) report(b *testing.B, of int, what string) {
	b.Helper()
	now := spentSoFar(b)
	b.ReportMetric(float64((now.user-was.user).Nanoseconds())/1000/float64(of), "user-µs/"+what)
	b.ReportMetric(float64(now.allocs-was.allocs)/float64(of), "allocs/"+what)
}
