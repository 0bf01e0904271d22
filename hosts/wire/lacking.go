package wire

import (
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// Lacking looks for programs and variables on this machine, as the start of a session does, and at the disk of the
// repository. was is what it returned last.
func Lacking(uses, was []host.Lack, environ []string, root string) (lacks []host.Lack) {
	if free, _, err := file.DiskFree(root); err == nil && full(free, slices.Contains(was, host.Lack{What: host.Disk})) {
		lacks = append(lacks, host.Lack{What: host.Disk})
	}
	for _, use := range uses {
		has := true
		switch use.What {
		case host.Variable:
			has = slices.ContainsFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, use.Name+"=") })
		case host.Program:
			_, err := driver.FindProgram(driver.Agent{Command: []string{use.Name}, Workspace: root}, environ)
			has = err == nil
		}
		if !has {
			lacks = append(lacks, use)
		}
	}
	return host.Lacks(lacks)
}

// full reports whether a disk has too little room. One that had needs a quarter more than the limit, so that a disk near the
// limit is not reported again and again.
func full(free uint64, was bool) bool {
	if was {
		return free < file.DiskFreeMin/4*5
	}
	return free < file.DiskFreeMin
}
