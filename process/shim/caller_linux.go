package shim

import (
	"errors"
	"syscall"
)

// ancestry returns a process and its ancestors. whole is true if the walk reached the top: the first
// process, or a process of another user that this one may not inspect.
func ancestry(pid int) (chain []Birth, whole bool) {
	for range ancestorsMax {
		is, parent := lineage(pid)
		if is.PID == 0 {
			return chain, len(chain) > 0 && errors.Is(syscall.Kill(pid, 0), syscall.EPERM)
		}
		chain = append(chain, is)
		if parent <= 1 {
			return chain, true
		}
		pid = parent
	}
	return chain, false
}

// lineage returns a process and its parent; the zero values if it has ended.
func lineage(pid int) (is Birth, parent int) {
	start, parent, ok := Lineage(pid)
	if !ok {
		return Birth{}, 0
	}
	return Birth{PID: pid, Start: start}, parent
}
