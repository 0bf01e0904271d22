package shim

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// tick is the unit of processor time in /proc, which Linux fixes for all programs (USER_HZ).
const tick = time.Second / 100

// ProcessorTime returns the processor time that a process, its living descendants, and the children that they have waited
// for have used. known is false if the process is gone.
func ProcessorTime(pid int) (used time.Duration, known bool) {
	if used, known = processorTime(pid); !known {
		return 0, false
	}
	for _, p := range descendants(pid) {
		more, _ := processorTime(p.PID) // 0: it has just ended
		used += more
	}
	return used, true
}

// processorTime reads proc_pid_stat(5): utime, stime, cutime and cstime.
func processorTime(pid int) (used time.Duration, known bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	const first, last = 11, 14 // after the command, which may contain any byte
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= last {
		return 0, false
	}
	for _, field := range fields[first : last+1] {
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, false
		}
		used += time.Duration(ticks) * tick
	}
	return used, true
}
