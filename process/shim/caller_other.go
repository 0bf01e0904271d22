//go:build !linux

package shim

// ancestry only reports whether the process exists, because this system does not offer more.
func ancestry(pid int) (chain []Birth, whole bool) {
	is, _ := lineage(pid)
	return []Birth{is}, is.PID != 0
}

// lineage returns a process without its start time; the zero value if it has ended.
func lineage(pid int) (is Birth, parent int) {
	if LifeOf(pid, 0) == Gone {
		return Birth{}, 0
	}
	return Birth{PID: pid}, 0
}
