package server

import (
	"errors"
	"syscall"

	"github.com/fairlead-dev/fairlead/shim"
)

// ancestorsMax bounds the walk up the process tree. Real process trees are not this deep.
const ancestorsMax = 128

// ancestry returns a process and its ancestors, each by PID and start time, so that a reused PID
// counts as another process. whole is true if the walk reached the top: the first process, or a
// process of another user that this one may not inspect.
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

// living returns the process alone. It is called for each order; reading the ancestors costs many
// more files.
func living(pid int) (is life, ok bool) {
	began, _, ok := shim.Lineage(pid)
	return life{pid: pid, began: began}, ok
}
