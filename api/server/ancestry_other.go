//go:build !linux

package server

import "github.com/fairlead-dev/fairlead/shim"

// ancestry only reports whether the process exists, because this system does not offer more.
func ancestry(pid int) (chain []life, whole bool) {
	if shim.LifeOf(pid, 0) == shim.Gone {
		return nil, false
	}
	return []life{{pid: pid}}, true
}

// living returns the process alone.
func living(pid int) (is life, ok bool) {
	if chain, _ := ancestry(pid); len(chain) > 0 {
		return chain[0], true
	}
	return life{}, false
}
