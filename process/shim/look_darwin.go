package shim

import "golang.org/x/sys/unix"

const stoppedState = 4 // SSTOP in sys/proc.h

// isStopped says whether a process was stopped by a signal or a debugger.
func isStopped(pid int) bool {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && k.Proc.P_stat == stoppedState
}
