//go:build !linux

package probe

import (
	"errors"
	"syscall"
)

// probeAttr puts the probing process into its own process group. This system offers no way to keep
// the program from the network.
func probeAttr(apart bool) *syscall.SysProcAttr {
	if apart {
		return nil
	}
	return &syscall.SysProcAttr{Setpgid: true}
}

func raiseLoopback() error { return errors.New("this system has no network namespaces") }
