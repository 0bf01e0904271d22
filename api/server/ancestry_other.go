//go:build !linux

package server

import "github.com/fairlead-dev/fairlead/shim"

// ancestry knows no more here than whether the process is there.
func ancestry(pid int) (chain []life, whole bool) {
	if shim.LifeOf(pid, 0) == shim.Gone {
		return nil, false
	}
	return []life{{pid: pid}}, true
}

// living is the process alone.
func living(pid int) (is life, ok bool) {
	if chain, _ := ancestry(pid); len(chain) > 0 {
		return chain[0], true
	}
	return life{}, false
}
