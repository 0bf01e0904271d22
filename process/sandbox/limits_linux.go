package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// segments opens the list of the System V segments of this view. It is for a process outside, which takes it by its number.
func segments() int {
	fd, err := unix.Open("/proc/sysvipc/shm", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0 // this kernel has none
	}
	return fd
}

// boundSegments keeps System V segments below the memory of the view, where the kernel lets a view have such a limit of its own. The
// caller counts what it sees of them.
func (v View) boundSegments() {
	if v.Memory > 0 {
		_ = os.WriteFile("/proc/sys/kernel/shmall", fmt.Append(nil, max(1, v.Memory/int64(os.Getpagesize()))), 0)
	}
}

// memorySize is the size of a file system in memory: most, or that of the view if it is less. Empty: the kernel's own.
func (v View) memorySize(most uint64) string {
	if own := uint64(v.Memory); own > 0 && (most == 0 || own < most) {
		most = own
	}
	if most == 0 {
		return ""
	}
	return fmt.Sprint(most)
}

// sharedMemory is the size of /dev/shm: the kernel's own default, which is half of the memory, or what browsers need.
func (v View) sharedMemory() string {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil && uint64(info.Totalram)*uint64(info.Unit)/2 >= sharedMemoryMin {
		return v.memorySize(0)
	}
	return v.memorySize(sharedMemoryMin)
}
