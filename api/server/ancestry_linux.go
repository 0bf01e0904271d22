package server

import (
	"errors"
	"syscall"

	"github.com/fairlead-dev/fairlead/shim"
)

// ancestorsMax bounds the walk; no tree of processes is as deep by itself.
const ancestorsMax = 128

// ancestry is a process and those above it, each by its number and the moment it began, so
// that a number used again is another process. It is whole where the walk came to the top:
// the first process, or one of another user that we may not see.
func ancestry(pid int) (chain []life, whole bool) {
	for range ancestorsMax {
		began, parent, ok := shim.Lineage(pid)
		if !ok {
			return chain, len(chain) > 0 && errors.Is(syscall.Kill(pid, 0), syscall.EPERM)
		}
		chain = append(chain, life{pid: pid, began: began})
		if parent <= 1 {
			return chain, true
		}
		pid = parent
	}
	return chain, false
}

// living is the process alone: each order asks, and those above it are as many files more.
func living(pid int) (is life, ok bool) {
	began, _, ok := shim.Lineage(pid)
	return life{pid: pid, began: began}, ok
}
