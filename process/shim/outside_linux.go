package shim

import (
	"fmt"
	"os"
)

// sameNetwork reports whether a process has the network namespace of this one.
func sameNetwork(pid int) bool {
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return false
	}
	its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	return err == nil && its == ours
}
