//go:build !linux

package doctor

import (
	"errors"
	"syscall"
)

// probeAttr puts the process that probes into a group of its own. Nothing here keeps a program from
// the network.
func probeAttr(apart bool) *syscall.SysProcAttr {
	if apart {
		return nil
	}
	return &syscall.SysProcAttr{Setpgid: true}
}

func raiseLoopback() error { return errors.New("there are no networks of one's own here") }
